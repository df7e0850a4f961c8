"""Break-glass in Chromium: from the card to the review, with a passkey."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from accounts.models import User
from accounts.roles import Role
from approvals.models import Approval, BreakGlass
from calls.basis import judged
from calls.models import Call
from calls.record.states import State
from notifications.models import MailRecipient
from policies.models import Effect
from policies.thresholds import Threshold
from registry.publishing import published_catalogue
from tests.browser.conftest import session_cookie
from tests.browser.scene import Office
from tests.browser.test_limits import WIDE, press, type_into
from tests.browser.test_passkeys import Window
from tests.console import scenery
from tests.processes import Stack

pytestmark = pytest.mark.long
# Where somebody wants to look at the pages: a folder.
SHOTS = os.environ.get("BREAK_GLASS_SHOTS", "")


@pytest.fixture
def here(own_stack: Stack) -> str:
    own_stack.env["COUNTERSIGN_BREAK_GLASS"] = "1"
    assert own_stack.web
    return own_stack.web_url.replace("127.0.0.1", "localhost")


@pytest.fixture
def carol(office: Office) -> User:
    made = scenery.person("carol", Role.APPROVER, password=scenery.PASSWORD)
    made.user_permissions.add(Permission.objects.get(codename="break_glass"))
    MailRecipient.objects.create(
        person=office.alice, address="alice@example.org", confirmed_at=timezone.now()
    )
    return made


@pytest.fixture
def page(chromium: Browser, here: str, carol: User) -> Iterator[Page]:
    context = chromium.new_context(base_url=here)
    context.add_cookies([session_cookie(carol, here)])
    yield context.new_page()
    context.close()


def look(page: Page, name: str) -> None:
    """At 1280 and 360 px, the latter in the dark."""
    for width, scheme in ((1280, "light"), (360, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert not page.evaluate(WIDE)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{name}-{width}.png", full_page=True)
    page.emulate_media(color_scheme="light")


def held_for_others(office: Office) -> UUID:
    asks = (Threshold(source="group:cfo", approve=2),)
    held = scenery.call(office.scout, office.send, scenery.MAIL, State.HELD, thresholds=asks)
    call = Call.objects.select_related("agent__owner", "token").get(pk=held)
    tool = published_catalogue.one(office.send.pk)
    assert tool is not None
    decision = judged(call, tool, call.to_send, at=call.asked_at)
    assert decision.effect == Effect.ASK
    # As the gateway would have asked.
    Approval.objects.filter(pk=held).update(reason=decision.reason)
    return held


def test_one_person_lets_a_call_run_and_another_reviews_it(
    page: Page, here: str, office: Office, carol: User
) -> None:
    Window(page, here).add_passkey()
    held = held_for_others(office)
    page.goto(f"/queue/{held}/")
    look(page, "card")
    press(page, "link", "Break the glass …")
    expect(page.get_by_role("heading", name="Break the glass")).to_be_visible()
    look(page, "form")
    press(page, "link", "Cancel")
    press(page, "link", "Break the glass …")
    page.get_by_label("Who is notified at once").select_option(label="alice")
    type_into(page, "Reason", "The office is on fire.")
    press(page, "button", "Break the glass with your passkey")
    expect(page.get_by_text("The call is sent. Another approver reviews this.")).to_be_visible()
    expect(page.get_by_text("Break-glass was used.")).to_be_visible()
    look(page, "used")
    assert Call.objects.get(pk=held).state != State.HELD

    page.context.add_cookies([session_cookie(office.alice, here)])
    page.goto("/")
    press(page, "link", "Review")
    look(page, "review")
    page.get_by_label("Justified", exact=True).check()
    type_into(page, "Why", "I called her.")
    press(page, "button", f"Close the review {Call.objects.get(pk=held).fingerprint}")
    expect(page.get_by_text("It is reviewed.")).to_be_visible()
    assert BreakGlass.objects.get().reviewer == office.alice
    expect(page.get_by_text("Break-glass was used.")).to_have_count(0)
