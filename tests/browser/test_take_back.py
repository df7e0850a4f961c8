"""A denial that can be taken back, with real processes, of which one is killed meanwhile."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from accounts.models import User
from accounts.roles import Role
from approvals.models import Approval
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from tests.browser.conftest import session_cookie
from tests.browser.scene import Office
from tests.console import scenery
from tests.processes import Stack

pytestmark = pytest.mark.long
SPAN_S = "12"


@pytest.fixture
def desk(chromium: Browser, office: Office, own_stack: Stack) -> Iterator[Callable[[User], Page]]:
    own_stack.env["COUNTERSIGN_TAKE_BACK_S"] = SPAN_S
    assert own_stack.web
    contexts = []

    def open_card(person: User) -> Page:
        contexts.append(chromium.new_context(base_url=own_stack.web_url))
        contexts[-1].add_cookies([session_cookie(person, own_stack.web_url)])
        page = contexts[-1].new_page()
        page.goto(f"/queue/{office.held}/")
        return page

    yield open_card
    for context in contexts:
        context.close()


def deny(page: Page) -> None:
    page.get_by_text("Deny …").click()
    page.locator("[data-deny]").press("Enter")


def test_a_denial_is_taken_back_and_another_outlives_the_process_that_took_it(
    desk: Callable[[User], Page], office: Office, own_stack: Stack
) -> None:
    alice, carol = desk(office.alice), desk(scenery.person("carol", Role.APPROVER))
    deny(alice)

    for page in (alice, carol):
        told = "Denied by alice. Its agent is notified in"
        expect(page.locator(f"#card-{office.held}")).to_contain_text(told)
        expect(page.locator(f"#row-{office.held}")).to_contain_text(
            "Denied, its agent is notified in"
        )
    left = alice.locator(f"#denial-{office.held} .countdown")
    before = left.inner_text()
    expect(left).not_to_have_text(before)
    expect(carol.get_by_role("button", name="Take your denial back")).to_have_count(0)
    alice.get_by_role("button", name="Take your denial back").press("Enter")
    expect(alice.locator(f"#denial-{office.held}")).to_be_empty()
    expect(carol.locator(f"#denial-{office.held}")).to_be_empty()
    assert Approval.objects.get(pk=office.held).denies_at is None

    deny(alice)
    expect(alice.get_by_role("button", name="Take your denial back")).to_be_visible()
    own_stack.web.kill()
    assert Call.objects.get(pk=office.held).state == State.HELD
    assert own_stack.worker
    own_stack.web.start()
    carol.reload()

    expect(carol.locator(f"#card-{office.held}.decided")).to_contain_text("Denied by alice")
    assert Call.objects.get(pk=office.held).state == State.DENIED
    assert Entry.objects.get(call_id=office.held, action="call.denied").actor == "alice"
