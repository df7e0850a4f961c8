"""What happens around a page while it is open: back, reload, another window, a lost line, the end
of the session. Here for calls, audit and catalogue; the queue's are in test_queue.py."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from accounts.roles import Role
from approvals import freezes
from audit.services import record
from calls.models import Call
from calls.record.states import State
from registry.models import Tool
from tests.browser.conftest import Opened, rung
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.browser.test_calls import live
from tests.browser.test_frame import sign_in
from tests.console import scenery

pytestmark = pytest.mark.long


def cuttable(page: Page) -> Callable[[], None]:
    """The page's WebSocket passes through here, and the answer cuts it."""
    sockets: list[Any] = []

    def through(socket: Any) -> None:
        server = socket.connect_to_server()
        sockets.append(socket)
        socket.on_message(server.send)
        server.on_message(socket.send)

    page.route_web_socket("**/live/**", through)
    return lambda: sockets[-1].close(code=1012)


def lost_then_back(page: Page, cut: Callable[[], None], missed: Callable[[], object]) -> None:
    live(page)
    cut()
    expect(page.locator("[data-connection]")).to_have_text("Reconnecting")
    missed()
    live(page)


def test_a_calls_page_reads_again_what_it_missed(alice: Page, office: Office) -> None:
    cut = cuttable(alice)
    alice.goto(f"/calls/{office.running}/")
    done = {"content": [{"type": "text", "text": "All quarters are well."}]}

    lost_then_back(alice, cut, lambda: scenery.finish(office.running, done))

    expect(alice.get_by_text("All quarters are well.")).to_be_visible()
    expect(alice.locator("#call-state")).to_contain_text("Succeeded")


def test_the_list_of_calls_reads_again_what_it_missed(alice: Page, office: Office) -> None:
    cut = cuttable(alice)
    alice.goto("/calls/")

    lost_then_back(alice, cut, lambda: scenery.finish(office.running, {"content": []}))

    expect(alice.locator(f"#state-{office.running}")).to_contain_text("Succeeded")


def test_the_record_reads_again_what_it_missed(alice: Page, office: Office) -> None:
    cut = cuttable(alice)
    alice.goto("/audit/?live=1")
    alice.mouse.move(2, 2)

    lost_then_back(alice, cut, lambda: record("note.missed", actor=office.alice.actor))

    expect(alice.locator("#entries tbody tr").first).to_contain_text("Note missed")


def test_the_catalogue_reads_again_what_was_frozen(alice: Page, office: Office) -> None:
    cut = cuttable(alice)
    alice.goto("/catalogue/")

    def freeze() -> None:
        freezes.begin(by=office.alice, reason="It moves.", server=office.send.server)

    lost_then_back(alice, cut, freeze)

    expect(alice.locator("#frozen")).to_contain_text("The server mailer is suspended.")


def test_a_call_that_one_window_withdraws_is_withdrawn_in_the_other(
    opened: Opened, alice: Page, office: Office
) -> None:
    carol = opened(scenery.person("carol", Role.APPROVER))
    carol.goto(f"/calls/{office.held}/")
    live(carol)
    alice.goto(f"/calls/{office.held}/")

    alice.get_by_role("button", name="Cancel this call").press("Enter")

    expect(alice.locator("#call-state")).to_contain_text("Withdrawn")
    expect(carol.locator("#call-state")).to_contain_text("Withdrawn")
    expect(carol.get_by_role("link", name="Read and decide")).to_be_hidden()
    # The page of before, with a button that is too late.
    alice.go_back()
    alice.reload()
    expect(alice.get_by_role("button", name="Cancel this call")).to_be_hidden()
    assert Call.objects.get(pk=office.held).state == State.WITHDRAWN


def test_what_one_window_does_the_other_follows_in_the_record(
    opened: Opened, alice: Page, office: Office
) -> None:
    ines = opened(scenery.person("ines", Role.AUDITOR))
    ines.goto("/audit/?live=1")
    live(ines)
    ines.mouse.move(2, 2)
    alice.goto("/toolsets/office/")
    alice.get_by_label("Title").fill("At night")
    alice.keyboard.press("Enter")
    expect(alice.get_by_label("Title")).to_have_value("At night")
    rung("calls")

    expect(ines.locator("#entries tbody tr").first).to_contain_text("alice")
    ines.reload()
    expect(ines.locator("#entries tbody tr").first).to_contain_text("alice")


def test_a_version_is_published_once_from_two_windows(
    opened: Opened, alice: Page, office: Office
) -> None:
    other = opened(office.alice)
    for page in (alice, other):
        page.goto(f"/tools/{office.sly.exposed_name}/publish/")
        page.get_by_label(f"Publish {office.sly.exposed_name}").check()
        page.get_by_label("Why it is published anyway").fill("We know it.")
    publish = "Publish selected"

    alice.get_by_role("button", name=publish).click()
    expect(alice.get_by_text("Published: 1.")).to_be_visible()
    other.get_by_role("button", name=publish).press("Enter")

    expect(other.get_by_text("What you chose is published already.")).to_be_visible()
    expect(other.get_by_role("button", name=publish)).to_have_count(0)
    other.go_back()
    other.reload()
    expect(other.get_by_role("button", name=publish)).to_have_count(0)
    assert Tool.objects.get(pk=office.sly.pk).state == Tool.State.PUBLISHED


def test_the_catalogues_rows_need_no_line_and_follow_another_window(
    opened: Opened, alice: Page, office: Office
) -> None:
    # The line is lost, and stays so.
    alice.route_web_socket("**/live/**", lambda socket: socket.close(code=1012))
    alice.goto("/catalogue/?server=words")
    expect(alice.locator("[data-connection]")).to_have_text("Reconnecting")
    row = alice.locator("#found .rows li").filter(has_text="words.translate")
    expect(row).to_contain_text("Unpublished")
    other = opened(office.alice)
    other.goto(f"/tools/{office.sly.exposed_name}/")
    other.get_by_role("link", name="Review and publish").click()
    other.get_by_label(f"Publish {office.sly.exposed_name}").check()
    other.get_by_label("Why it is published anyway").fill("We know it.")
    other.get_by_role("button", name="Publish selected").click()
    expect(other.get_by_text("Published: 1.")).to_be_visible()

    alice.get_by_role("searchbox", name="Search").press_sequentially("translate")

    expect(alice).to_have_url(re.compile("q=translate"))
    expect(row).to_have_count(1)
    expect(row).not_to_contain_text("Unpublished")
    alice.go_back()
    alice.reload()
    expect(row).not_to_contain_text("Unpublished")


@pytest.fixture
def deaf(opened: Opened, office: Office) -> Page:
    """A window that hears nothing of the end of its session."""
    page = opened(office.alice)
    page.route_web_socket("**/live/**", lambda socket: None)
    return page


def test_a_call_is_not_cancelled_by_a_session_that_ended(deaf: Page, office: Office) -> None:
    deaf.goto(f"/calls/{office.held}/")
    Session.objects.all().delete()

    deaf.get_by_role("button", name="Cancel this call").press("Enter")
    deaf.wait_for_url(f"**/sign-in/?next=/calls/{office.held}/&ended=1")
    assert Call.objects.get(pk=office.held).state == State.HELD
    sign_in(deaf)

    deaf.wait_for_url(f"**/calls/{office.held}/")
    deaf.get_by_role("button", name="Cancel this call").click()
    expect(deaf.locator("#call-state")).to_contain_text("Withdrawn")


def test_a_search_that_met_the_end_of_the_session_is_made_after_the_sign_in(
    deaf: Page, office: Office
) -> None:
    deaf.goto("/audit/")
    deaf.get_by_label("Agent", exact=True).fill("scout")
    Session.objects.all().delete()
    deaf.keyboard.press("Enter")
    deaf.wait_for_url("**/sign-in/**")
    sign_in(deaf)
    expect(deaf.get_by_label("Agent", exact=True)).to_have_value("scout")
    assert "agent=scout" in deaf.url

    deaf.goto("/catalogue/")
    Session.objects.all().delete()
    deaf.get_by_role("searchbox", name="Search").press_sequentially("mail")
    deaf.wait_for_url("**/sign-in/**")
    sign_in(deaf)
    expect(deaf.get_by_role("heading", name="Catalogue", level=1)).to_be_visible()


def test_back_and_reload_keep_ones_place_in_the_record_and_the_calls(
    alice: Page, office: Office
) -> None:
    alice.goto("/audit/")
    choose(alice.get_by_label("State"), "held")
    alice.locator("[data-filters]").get_by_role("button", name="Filter", exact=True).press("Enter")
    expect(alice.locator("#entries tbody tr")).to_have_count(2)
    alice.locator("#entries tbody tr").first.get_by_role("link").first.press("Enter")
    expect(alice.get_by_role("heading", level=1)).to_contain_text("Entry")
    alice.reload()
    alice.get_by_role("link", name=re.compile("^[0-9a-f]{8}-")).first.press("Enter")
    alice.wait_for_url("**/calls/*/")
    alice.reload()
    expect(alice.locator("#call-state")).to_contain_text("Pending")
    alice.go_back()
    alice.go_back()
    expect(alice.locator("#entries tbody tr")).to_have_count(2)
    alice.reload()
    expect(alice.get_by_label("State")).to_have_value("held")


def test_the_queue_is_the_same_after_a_reload_and_ones_decision_after_back(
    alice: Page, office: Office
) -> None:
    alice.goto("/queue/")
    held = alice.locator(f"#card-{office.held}")
    held.get_by_label("Comment to the agent").fill("Not decided yet")
    alice.reload()
    expect(held.get_by_role("button", name="Approve")).to_be_visible()
    assert Call.objects.get(pk=office.held).state == State.HELD

    approve = held.get_by_role("button", name="Approve")
    alice.keyboard.press("j")
    # Somebody reads it from its beginning.
    expect(held.locator(".arguments > div").first).to_be_in_viewport()
    alice.keyboard.press("a")
    expect(approve).to_be_focused()
    expect(approve).not_to_have_attribute("aria-disabled", "true")
    alice.keyboard.press("Enter")
    expect(held).to_contain_text("Approved by alice")
    alice.get_by_role("link", name="Calls", exact=True).click()
    alice.wait_for_url("**/calls/")
    alice.go_back()
    alice.reload()
    expect(alice.locator("[data-card]")).to_have_count(1)
    expect(held).to_have_count(0)


def test_without_javascript_a_call_is_read_and_withdrawn_and_a_tool_found(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/calls/")
    choose(page.get_by_label("State"), "held")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_role("link", name="mailer.send_mail").click()
    expect(page.get_by_text("Minutes of Tuesday", exact=True)).to_be_visible()
    page.get_by_text("As the agent wrote them").click()
    expect(page.locator("pre", has_text='"Minutes of Tuesday"').first).to_be_visible()
    page.get_by_role("button", name="Cancel this call").click()
    expect(page.locator("#call-state")).to_contain_text("Withdrawn")

    page.get_by_role("link", name="Catalogue", exact=True).first.click()
    narrow = page.get_by_role("navigation", name="Narrow by")
    if not narrow.get_by_role("link", name="Destructive", exact=True).is_visible():
        narrow.locator("summary").first.click()
    narrow.get_by_role("link", name="Destructive", exact=True).click()
    page.get_by_role("link", name="mailer.send_mail").click()
    page.get_by_role("link", name="Policy", exact=True).click()
    page.get_by_role("link", name="Ask what would happen to a call").click()
    choose(page.get_by_label("Agent", exact=True), "scout")
    page.get_by_role("button", name="Evaluate").click()
    expect(page.get_by_text("Nothing leaves the house").first).to_be_visible()


def test_without_javascript_one_refuses_on_a_calls_own_page(opened: Opened, office: Office) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto(f"/calls/{office.held}/")
    page.get_by_role("link", name="Read and decide").click()
    held = page.locator("[data-card]")
    held.get_by_text("Deny …").click()
    held.get_by_label("Comment to the agent").fill("Ana has left.")
    held.get_by_role("button", name="Deny").click()

    expect(page.get_by_text("You denied mailer.send_mail for scout.")).to_be_visible()
    assert Call.objects.get(pk=office.held).state == State.DENIED
