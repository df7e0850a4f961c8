"""Cards while people read, type and press: stops, lost answers, and others who are faster."""

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from accounts.models import User
from accounts.roles import Role
from approvals import freezes
from approvals.models import Approval, Vote
from approvals.services import take_back, vote
from calls.models import Call
from calls.record.states import State
from policies.thresholds import Threshold
from tests.browser.conftest import Opened, rung
from tests.browser.scene import Office
from tests.console import scenery

STOPPED = "Suspended. Calls of this agent have been suspended since"


@pytest.fixture
def ada(office: Office) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


def card(page: Page, office: Office) -> Locator:
    return page.locator(f"#card-{office.held}")


def approve(page: Page, office: Office) -> Locator:
    return card(page, office).get_by_role("button", name="Approve")


def live(page: Page) -> None:
    expect(page.locator("[data-connection]")).to_have_text("Live")


@pytest.mark.parametrize("width", [360, 1280])
def test_an_emergency_stop_shows_on_the_card_and_what_was_typed_stays(
    opened: Opened, office: Office, ada: User, width: int
) -> None:
    page = opened(office.alice, viewport={"width": width, "height": 2000})
    page.goto(f"/queue/{office.held}/")
    live(page)
    expect(approve(page, office)).not_to_have_attribute("aria-disabled", "true")
    page.get_by_label("Comment to the agent").fill("half a thou")

    stop = freezes.begin(by=office.alice, reason="It asks too often.", agent=office.scout)
    rung("queue")

    expect(card(page, office)).to_contain_text(STOPPED)
    expect(card(page, office)).to_contain_text("It asks too often.")
    expect(card(page, office)).to_contain_text("to decide once the emergency stop has ended")
    expect(card(page, office).get_by_role("timer")).to_have_count(0)
    expect(approve(page, office)).to_be_disabled()
    expect(page.get_by_label("Comment to the agent")).to_have_value("half a thou")

    freezes.end(stop, by=ada, why="It was told not to.")
    rung("queue")

    expect(approve(page, office)).to_be_enabled()
    expect(card(page, office).get_by_role("timer")).to_have_count(1)
    approve(page, office).click()
    expect(card(page, office)).to_contain_text("Approved by alice")


def test_during_a_stop_the_keyboard_leads_to_why_and_one_may_deny(
    alice: Page, office: Office
) -> None:
    freezes.begin(by=office.alice, reason="It asks too often.", agent=office.scout)
    alice.goto("/queue/")
    alice.keyboard.press("j")

    alice.keyboard.press("a")
    expect(card(alice, office).locator("[data-suspended]")).to_be_focused()
    alice.keyboard.press("Enter")
    alice.keyboard.press("d")
    alice.keyboard.press("Space")
    alice.keyboard.press("Enter")

    expect(card(alice, office)).to_contain_text("Denied by alice")


def test_without_javascript_a_stopped_call_cannot_be_approved(
    opened: Opened, office: Office
) -> None:
    freezes.begin(by=office.alice, reason="It asks too often.", agent=office.scout)
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/queue/")

    expect(card(page, office)).to_contain_text(STOPPED)
    expect(approve(page, office)).to_be_disabled()
    assert Call.objects.get(pk=office.held).state == State.HELD
    assert Approval.objects.get(pk=office.held).state == Approval.State.WAITING


LOST = ("ERR_FAILED", "htmx:sendError")
MINE = "The record has your vote: you approved this call."
NONE = "The answer to what you pressed was lost. The record has no vote of yours on this call."


def swallow(route: Route) -> None:
    """The server takes it, and its answer never arrives."""
    route.fetch()
    route.abort()


def voted(office: Office, by: User, *, approve: bool = False) -> None:
    approval = Approval.objects.for_queue().get(pk=office.held)
    digest = approval.call.call_digest
    vote(approval, by=by, approve=approve, seen_digest=digest, reason="Ana has left.")
    rung("queue")


def test_after_a_lost_answer_the_card_asks_what_became_of_it(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice, will_complain_of=LOST, viewport={"width": 360, "height": 2400})
    # Or news of the vote show it before anything is found missing.
    page.route_web_socket("**/live/**", lambda socket: None)
    page.goto(f"/queue/{office.held}/")
    page.route("**/approve/", swallow)
    card(page, office).get_by_label("Comment to the agent").fill("As agreed.")

    approve(page, office).click()

    expect(card(page, office)).to_contain_text(MINE)
    expect(card(page, office)).to_contain_text("Approved by alice")
    expect(card(page, office)).not_to_contain_text("What you had written was not sent")
    expect(page.get_by_text("may have been recorded or not")).to_have_count(0)
    assert Vote.objects.get(approval=office.held).reason == "As agreed."


def test_after_a_lost_answer_what_became_of_the_call_is_in_view(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice, will_complain_of=LOST, viewport={"width": 360, "height": 400})
    page.route_web_socket("**/live/**", lambda socket: None)
    page.goto(f"/queue/{office.held}/")
    page.route("**/approve/", swallow)

    # Nothing is approved unread.
    card(page, office).locator(".arguments .end").last.scroll_into_view_if_needed()
    approve(page, office).focus()
    page.evaluate("scrollTo(0, 700)")
    page.keyboard.press("Enter")

    expect(card(page, office)).to_contain_text(MINE)
    expect(card(page, office)).to_be_focused()
    expect(card(page, office).get_by_text("Approved by alice")).to_be_in_viewport()


def test_what_never_arrived_is_told_and_can_be_pressed_again(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice, will_complain_of=LOST, viewport={"width": 1280, "height": 2400})
    page.goto("/queue/")
    page.route("**/approve/", lambda route: route.abort(), times=1)
    card(page, office).get_by_label("Comment to the agent").fill("As agreed.")
    card(page, office).get_by_label("Comment to the agent").press("Tab")
    approve(page, office).press("Enter")

    expect(card(page, office)).to_contain_text(NONE)
    expect(card(page, office).get_by_label("Comment to the agent")).to_have_value("As agreed.")
    assert not Vote.objects.exists()

    approve(page, office).click()
    expect(card(page, office)).to_contain_text("Approved by alice")
    assert Vote.objects.get(approval=office.held).reason == "As agreed."


def test_it_is_asked_again_until_countersign_answers(opened: Opened, office: Office) -> None:
    page = opened(office.alice, will_complain_of=LOST, viewport={"width": 1280, "height": 2400})
    page.route_web_socket("**/live/**", lambda socket: None)
    page.goto(f"/queue/{office.held}/")
    page.route("**/approve/", swallow)
    page.route("**/became/**", lambda route: route.abort(), times=2)

    approve(page, office).click()

    expect(card(page, office)).to_contain_text("No answer came. Looking up")
    expect(card(page, office)).to_contain_text(MINE)
    expect(card(page, office)).not_to_contain_text("No answer came. Looking up")


def test_what_was_typed_stays_when_somebody_else_decides(opened: Opened, office: Office) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    page = opened(office.alice, viewport={"width": 360, "height": 780})
    page.goto(f"/queue/{office.held}/")
    live(page)
    card(page, office).get_by_label("Comment to the agent").fill("Ask Ana <first>.")

    voted(office, carol)

    expect(card(page, office)).to_contain_text("Denied by carol")
    expect(card(page, office)).to_contain_text(
        "What you had written was not sent: Ask Ana <first>."
    )


def test_what_was_typed_stays_for_the_slower_of_two(opened: Opened, office: Office) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    page = opened(office.alice, viewport={"width": 1280, "height": 2400})
    page.route_web_socket("**/live/**", lambda socket: None)
    page.goto("/queue/")
    card(page, office).get_by_label("Comment to the agent").fill("Ask Ana first.")
    voted(office, carol)

    approve(page, office).click()

    expect(card(page, office)).to_contain_text("carol answered first")
    expect(card(page, office)).to_contain_text("What you had written was not sent: Ask Ana first.")


def test_without_javascript_what_was_typed_comes_back_too(opened: Opened, office: Office) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/queue/")
    card(page, office).get_by_label("Comment to the agent").fill("Ask Ana first.")
    voted(office, carol)

    approve(page, office).click()

    expect(page.locator("#messages")).to_contain_text("carol answered first")
    expect(page.locator("#messages")).to_contain_text("not sent: “Ask Ana first.”")


def test_an_edit_stays_when_somebody_else_decides(opened: Opened, office: Office) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    page = opened(office.alice, will_complain_of=("422",), viewport={"width": 360, "height": 780})
    page.goto(f"/queue/{office.held}/edit/")
    page.get_by_label("subject").fill("Minutes of Wednesday")
    page.get_by_label("Why").fill("It was Wednesday.")
    voted(office, carol)

    page.get_by_role("button", name="Suggest these arguments").click()

    expect(page.get_by_text("carol answered first")).to_be_visible()
    written = page.get_by_role("region", name="What you had written, and was not proposed")
    expect(written).to_contain_text("Minutes of Wednesday")
    expect(written).to_contain_text("It was Wednesday.")


def test_one_comment_goes_along_with_whichever_is_pressed(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    held = card(alice, office)
    alice.keyboard.press("j")
    held.get_by_label("Comment to the agent").focus()
    alice.keyboard.type("Ana has left.")

    held.locator("summary", has_text="Deny …").press("Enter")
    held.get_by_text("Cancel", exact=True).click()
    held.get_by_text("Deny …").click()
    held.get_by_role("button", name="Deny").press("Enter")

    expect(held).to_contain_text("Denied by alice")
    assert Vote.objects.get(approval=office.held).reason == "Ana has left."


def test_why_a_vote_does_not_count_and_that_one_fell_shows_by_itself(
    opened: Opened, office: Office
) -> None:
    carol, dora = (scenery.person(name, Role.APPROVER) for name in ("carol", "dora"))
    three = scenery.call(
        office.scout, office.send, scenery.MAIL, State.HELD, thresholds=(Threshold(approve=3),)
    )
    for by in (carol, dora):
        approval = Approval.objects.for_queue().get(pk=three)
        vote(approval, by=by, approve=True, seen_digest=approval.call.call_digest)
    page = opened(office.alice, viewport={"width": 360, "height": 780}, color_scheme="dark")
    page.goto(f"/queue/{three}/")
    live(page)
    votes = page.locator(f"#votes-{three}")
    expect(votes).to_contain_text("2 of 3")
    page.locator(f"#card-{three}").get_by_label("Comment to the agent").fill("half a thou")

    carol.groups.clear()
    take_back(Approval.objects.for_queue().get(pk=three), by=dora)
    rung("queue")

    expect(votes).to_contain_text("does not count: may no longer decide")
    expect(votes).to_contain_text("Taken back")
    expect(votes).to_contain_text("0 of 3")
    expect(page.locator(f"#card-{three}").get_by_label("Comment to the agent")).to_have_value(
        "half a thou"
    )


def test_the_calls_page_says_by_itself_that_it_is_stopped(
    alice: Page, office: Office, ada: User
) -> None:
    alice.goto(f"/calls/{office.held}/")
    live(alice)
    expect(alice.locator("#talk")).to_be_visible()
    expect(alice.locator("#talk")).not_to_contain_text("Suspended")

    stop = freezes.begin(by=office.alice, reason="It asks too often.", agent=office.scout)
    rung("queue", "calls")

    expect(alice.locator("#talk")).to_contain_text(STOPPED)
    freezes.end(stop, by=ada, why="It was told not to.")
    rung("queue", "calls")
    expect(alice.locator("#talk")).not_to_contain_text("Suspended")
