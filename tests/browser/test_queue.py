"""The queue as an approver uses it, several times a day."""

import re
from collections.abc import Callable

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Locator, Page, Route, expect

from accounts.roles import Role
from approvals import comments
from approvals.models import Approval
from calls.models import Call
from calls.record.states import State
from tests.browser.conftest import Opened, rung
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.console import scenery
from tests.processes import Stack

# Until this stands so far above the end of the window, and every observer has heard of it.
SCROLLED = """(it, above) => {
  scrollBy({ top: it.getBoundingClientRect().bottom - innerHeight + above, behavior: "instant" });
  return new Promise((done) => {
    new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && done()).observe(it);
  });
}"""


def card(page: Page, office: Office) -> Locator:
    return page.locator(f"#card-{office.held}")


def rows(page: Page) -> Locator:
    return page.locator("[data-row]")


def state(office: Office) -> str:
    return Call.objects.get(pk=office.held).state


def another(office: Office, subject: str = "Another") -> None:
    arguments = {**scenery.MAIL, "subject": subject}
    scenery.call(office.scout, office.send, arguments, State.HELD)
    rung("queue")


def refuse(held: Locator, *because: str) -> None:
    held.get_by_text("Deny …").click()
    for reason in because:
        held.get_by_label(reason).check(force=True)
    held.get_by_role("button", name="Deny").click()


def live(page: Page) -> None:
    expect(page.locator("[data-connection]")).to_have_text("Live")


@pytest.mark.smoke
def test_approving_changes_the_card_where_it_stands(alice: Page, office: Office) -> None:
    # The whole card is in view: nothing has to be scrolled to press its button.
    alice.set_viewport_size({"width": 1280, "height": 1800})
    alice.goto("/queue/")
    place = card(alice, office).bounding_box()

    card(alice, office).get_by_role("button", name="Approve").click()

    expect(card(alice, office)).to_contain_text("Approved by alice")
    expect(card(alice, office)).to_be_focused()
    now = card(alice, office).bounding_box()
    assert place
    assert now
    assert (now["x"], now["y"]) == (place["x"], place["y"])
    assert state(office) == State.QUEUED
    expect(alice.locator("#queue-count")).to_contain_text("1")


@pytest.mark.smoke
def test_refusing_with_reasons_by_keyboard(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    held = card(alice, office)
    alice.keyboard.press("j")
    expect(rows(alice).first).to_be_focused()

    alice.keyboard.press("d")
    expect(held.get_by_label("wrong target")).to_be_focused()
    alice.keyboard.press("Space")
    held.get_by_label("Comment to the agent").focus()
    alice.keyboard.type("Ana has left.")
    held.get_by_label("does harm").focus()
    alice.keyboard.press("Tab")
    expect(held.get_by_role("button", name="Deny")).to_be_focused()
    alice.keyboard.press("Enter")

    expect(held).to_contain_text("Denied by alice")
    expect(held).to_contain_text("It is aimed at the wrong target. Ana has left.")
    expect(held).to_be_focused()
    assert state(office) == State.DENIED


@pytest.mark.parametrize("java_script_enabled", [True, False])
def test_while_a_refusal_is_written_only_deny_and_cancel_show(
    opened: Opened, office: Office, java_script_enabled: bool
) -> None:
    phone = {"width": 360, "height": 780}
    page = opened(office.alice, viewport=phone, java_script_enabled=java_script_enabled)
    page.goto(f"/queue/{office.held}/")
    held = card(page, office)
    approve, opener = held.locator("[data-approve]"), held.get_by_text("Deny …")
    deny, cancel = held.locator("[data-deny]"), held.get_by_text("Cancel", exact=True)

    opener.click()
    for hidden in (approve, opener):
        expect(hidden).to_be_hidden()
    for shown in (held.get_by_text("wrong target"), held.get_by_label("Comment to the agent")):
        expect(shown).to_be_visible()
    beside, place = deny.bounding_box(), held.locator(".refusal > summary").bounding_box()
    assert beside
    assert place
    assert (place["y"], place["height"]) == (beside["y"], beside["height"])
    assert place["x"] >= beside["x"] + beside["width"]

    cancel.click()
    for hidden in (deny, cancel):
        expect(hidden).to_be_hidden()
    for shown in (approve, opener):
        expect(shown).to_be_visible()


def test_escape_in_the_comment_brings_approve_back(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    held = card(alice, office)
    held.get_by_text("Deny …").click()
    expect(held.locator("[data-approve]")).to_be_hidden()

    held.get_by_label("Comment to the agent").press("Escape")

    expect(held.locator("[data-approve]")).to_be_visible()
    expect(held).to_be_focused()


def test_enter_on_a_reason_to_refuse_never_approves(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    held = card(alice, office)
    alice.keyboard.press("j")
    alice.keyboard.press("d")
    alice.keyboard.press("Space")

    alice.keyboard.press("Enter")

    expect(held).to_contain_text("Denied by alice")
    assert state(office) == State.DENIED


@pytest.mark.smoke
def test_approving_by_keyboard_takes_two_keys(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    held = card(alice, office)
    approve = held.get_by_role("button", name="Approve")
    alice.keyboard.press("j")

    alice.keyboard.press("a")
    expect(approve).to_be_focused()
    expect(approve).to_have_accessible_description("Enter approves, Esc goes back to the card.")
    assert state(office) == State.HELD
    alice.keyboard.press("Escape")
    expect(held).to_be_focused()
    alice.keyboard.press("a")
    alice.keyboard.press("Enter")

    expect(held).to_contain_text("Approved by alice")
    assert state(office) == State.QUEUED


def test_after_a_decision_two_keys_lead_to_the_next_card(alice: Page, office: Office) -> None:
    alice.goto("/queue/?sort=oldest")
    alice.keyboard.press("j")
    alice.keyboard.press("a")
    expect(card(alice, office).get_by_role("button", name="Approve")).to_be_focused()
    alice.keyboard.press("Enter")
    expect(card(alice, office)).to_contain_text("Approved by alice")
    expect(card(alice, office)).to_be_focused()

    alice.keyboard.press("Tab")
    expect(alice.get_by_role("link", name="Next pending approval")).to_be_focused()
    alice.keyboard.press("Enter")

    alice.wait_for_url("**/queue/*/?sort=oldest")
    expect(alice.locator("#detail [data-approve]")).to_be_visible()


def test_news_that_comes_before_the_answer_leads_on_too(alice: Page, office: Office) -> None:
    held: list[Callable[[], None]] = []

    def hold(route: Route) -> None:
        answer = route.fetch()
        held.append(lambda: route.fulfill(response=answer))

    alice.route("**/approve/", hold)
    alice.goto("/queue/?sort=oldest")
    card(alice, office).get_by_role("button", name="Approve").press("Enter")
    following = alice.get_by_role("link", name="Next pending approval")
    expect(following).to_be_visible()

    (answer,) = held
    answer()
    expect(alice.locator(".htmx-request")).to_have_count(0)
    following.press("Enter")
    alice.wait_for_url("**/queue/*/?sort=oldest")


def test_approve_arms_when_all_arguments_were_in_view(opened: Opened, office: Office) -> None:
    page = opened(office.alice, viewport={"width": 1280, "height": 420})
    page.goto("/queue/")
    approve = card(page, office).get_by_role("button", name="Approve")
    expect(approve).to_have_attribute("aria-disabled", "true")
    expect(approve).to_have_accessible_description(
        "Scroll through all arguments to enable Approve."
    )

    # Too early, by whatever way: nothing is sent, and what was not seen comes into view.
    approve.dispatch_event("click")
    last = card(page, office).locator(".arguments > div").last
    last.scroll_into_view_if_needed()
    expect(approve).not_to_have_attribute("aria-disabled", "true")
    assert state(office) == State.HELD

    approve.click()
    expect(card(page, office)).to_contain_text("Approved by alice")


def test_what_stands_behind_a_phones_bar_was_not_in_view(opened: Opened, office: Office) -> None:
    page = opened(office.alice, viewport={"width": 360, "height": 600})
    page.goto(f"/queue/{office.held}/")
    approve = card(page, office).get_by_role("button", name="Approve")
    end = card(page, office).locator(".arguments > div .end").last
    expect(approve).to_be_in_viewport(ratio=1)
    assert approve.get_attribute("aria-disabled") == "true"

    end.evaluate(SCROLLED, 10)
    assert approve.get_attribute("aria-disabled") == "true"

    end.evaluate(SCROLLED, 200)
    expect(approve).not_to_have_attribute("aria-disabled", "true")


def test_a_phone_of_700_pixels_shows_a_mail_and_its_buttons_at_once(
    opened: Opened, office: Office
) -> None:
    mail = {**scenery.MAIL, "body": "Dear Ana,\nhere are the figures."}
    held = scenery.call(office.scout, office.send, mail, State.HELD)
    page = opened(office.alice, viewport={"width": 360, "height": 700}, has_touch=True)
    # As the agent's link leads there: one press to open it, one to approve.
    page.goto(f"/queue/{held}/")
    asked = page.locator(f"#card-{held}")
    approve = asked.get_by_role("button", name="Approve")

    expect(asked.get_by_text("here are the figures.").first).to_be_in_viewport(ratio=1)
    for button in (approve, asked.get_by_text("Deny …")):
        expect(button).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    approve.tap()

    expect(asked).to_contain_text("Approved by alice")


def test_the_queue_says_itself_to_a_screen_reader(alice: Page, office: Office) -> None:
    alice.goto("/queue/")

    said = re.compile("^scout, for bob, requests mailer.send_mail on mailer.$")
    item = alice.get_by_role("article", name=said)
    expect(item).to_have_count(1)
    expect(item.get_by_role("heading", level=2)).to_contain_text("requests")
    expect(item.get_by_role("timer")).to_contain_text("expires in")
    expect(item.get_by_role("term").first).to_contain_text("to array of string")
    expect(item.get_by_role("textbox", name="Comment to the agent")).to_be_visible()
    expect(item.get_by_role("button", name="Approve")).to_be_visible()
    refuse(item)
    expect(item).to_contain_text("Denied by alice")

    expect(alice.locator(".news")).to_have_role("status")
    expect(alice.locator("#messages")).to_have_role("status")
    main = alice.get_by_role("navigation", name="Main")
    expect(main.get_by_role("link", name="Queue 1 pending approval")).to_be_visible()


def test_enter_leads_to_the_card_o_to_the_calls_page_and_escape_back(
    alice: Page, office: Office
) -> None:
    alice.goto("/queue/")

    alice.keyboard.press("j")
    alice.keyboard.press("Enter")
    expect(card(alice, office)).to_be_focused()
    alice.keyboard.press("Escape")
    expect(rows(alice).first).to_be_focused()
    alice.keyboard.press("o")
    alice.wait_for_url(f"**/calls/{office.held}/")

    alice.go_back()
    alice.wait_for_url(f"**/queue/{office.held}/")
    expect(rows(alice)).to_have_count(2)


def test_enter_in_the_reason_decides_nothing(alice: Page, office: Office) -> None:
    alice.goto("/queue/")

    card(alice, office).get_by_label("Comment to the agent").focus()
    alice.keyboard.type("Hm.")
    alice.keyboard.press("Enter")

    expect(card(alice, office).get_by_label("Comment to the agent")).to_have_value("Hm.\n")
    assert state(office) == State.HELD


def test_j_and_k_walk_the_list_and_show_each_card(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    shown = alice.locator("[data-card]")
    place = rows(alice).first.bounding_box()

    alice.keyboard.press("j")
    expect(rows(alice).first).to_be_focused()
    alice.keyboard.press("j")
    expect(rows(alice).nth(1)).to_be_focused()
    expect(rows(alice).nth(1)).to_have_attribute("aria-current", "true")
    expect(shown).to_contain_text("files.write_file")
    expect(shown).to_have_count(1)
    expect(alice).to_have_title("(2) files.write_file · Queue · Countersign")
    alice.keyboard.press("k")
    expect(shown).to_contain_text("mailer.send_mail")
    expect(rows(alice).nth(1)).not_to_have_attribute("aria-current", "true")
    assert rows(alice).first.bounding_box() == place

    # The address is the card's own, as on a phone, where a line leads there.
    alice.wait_for_url(f"**/queue/{office.held}/")
    rows(alice).nth(1).click()
    expect(shown).to_contain_text("files.write_file")
    another(office)
    alice.get_by_role("link", name="1 new").press("Enter")
    expect(rows(alice)).to_have_count(3)
    expect(shown).to_contain_text("files.write_file")


def test_on_a_phone_a_line_leads_to_the_page_of_its_card_and_back(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice, viewport={"width": 360, "height": 700}, has_touch=True)
    page.goto("/queue/?sort=newest")
    expect(card(page, office)).to_be_hidden()

    rows(page).last.tap()

    page.wait_for_url(f"**/queue/{office.held}/?sort=newest")
    expect(card(page, office)).to_be_visible()
    expect(rows(page).first).to_be_hidden()
    page.locator(".breadcrumbs").get_by_role("link", name="Queue").tap()
    page.wait_for_url("**/queue/?sort=newest")
    expect(rows(page).first).to_be_visible()


def test_a_view_is_saved_used_and_removed(alice: Page, office: Office) -> None:
    alice.goto("/queue/?sort=newest&group=agent")
    expect(alice.locator("#queue-pending")).to_contain_text("pending · oldest")
    alice.get_by_label("Name of the view").fill("By agent")
    alice.keyboard.press("Enter")
    expect(alice.get_by_text("The view “By agent” is saved.")).to_be_visible()
    alice.goto("/queue/")
    views = alice.get_by_role("navigation", name="Saved views")
    views.get_by_role("link", name="By agent").press("Enter")
    alice.wait_for_url("**/queue/?group=agent&sort=newest")
    expect(views.get_by_role("link", name="By agent")).to_have_attribute("aria-current", "page")

    alice.get_by_label("Name of the view").fill("Also by agent")
    alice.get_by_role("button", name="Save view").click()
    views.get_by_role("button", name="Remove the view Also by agent").click()
    views.get_by_role("button", name="Remove the view By agent").press("Enter")

    expect(views).to_have_count(0)


def test_the_list_is_filtered_sorted_and_grouped_by_its_address(
    alice: Page, office: Office
) -> None:
    alice.goto("/queue/")
    alice.get_by_text("Filter and sort").press("Enter")
    choose(alice.get_by_label("Sort"), "newest")
    choose(alice.get_by_label("Group by"), "agent")
    alice.get_by_role("button", name="Apply").press("Enter")
    expect(alice.get_by_role("heading", name="ledger-clerk 1")).to_be_visible()
    expect(alice.get_by_role("heading", name="scout 1")).to_be_visible()

    choose(alice.get_by_label("Agent", exact=True), "scout")
    choose(alice.get_by_label("Tool", exact=True), "mailer.send_mail")
    alice.get_by_role("button", name="Apply").click()
    alice.wait_for_url("**agent=scout&tool=mailer.send_mail&sort=newest&group=agent")
    expect(rows(alice)).to_have_count(1)
    live(alice)
    another(office)
    alice.get_by_role("link", name="1 new").click()
    expect(rows(alice)).to_have_count(2)

    alice.get_by_role("link", name="Clear").press("Enter")
    alice.wait_for_url("**/queue/")
    expect(rows(alice)).to_have_count(3)


def test_the_list_is_filtered_beside_a_card_too(alice: Page, office: Office) -> None:
    for press in (Locator.click, lambda button: button.press("Enter")):
        alice.goto(f"/queue/{office.held}/?sort=newest")
        alice.get_by_text("Filter and sort").click()
        press(alice.get_by_text("Filter and sort"))
        for name, wanted in (
            ("Agent", "ledger-clerk"),
            ("Tool", "files.write_file"),
            ("Sort", "risk"),
            ("Group by", "tool"),
        ):
            choose(alice.get_by_label(name, exact=True), wanted)
        press(alice.get_by_role("button", name="Apply"))
        alice.wait_for_url("**agent=ledger-clerk&tool=files.write_file&sort=risk&group=tool")
        expect(rows(alice)).to_have_count(1)

    alice.goto(f"/queue/{office.held}/?sort=newest")
    press(alice.get_by_role("link", name="Clear"))
    alice.wait_for_url("**/queue/")
    expect(rows(alice)).to_have_count(2)


@pytest.mark.smoke
def test_new_calls_are_announced_and_move_nothing(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    live(alice)
    card(alice, office).get_by_label("Comment to the agent").fill("half a thou")
    place = card(alice, office).bounding_box()

    another(office)

    news = alice.get_by_role("status").get_by_role("link", name="1 new")
    expect(news).to_be_in_viewport(ratio=1)
    assert card(alice, office).bounding_box() == place
    expect(alice.locator("#queue-count")).to_contain_text("3")
    expect(alice.locator("link[rel=icon]")).to_have_attribute("href", re.compile("favicon-3"))
    news.press("Enter")
    expect(rows(alice)).to_have_count(3)
    expect(rows(alice).last).to_be_focused()
    expect(card(alice, office).get_by_label("Comment to the agent")).to_have_value("half a thou")
    expect(news).to_have_count(0)


def test_news_that_overtake_more_cards_leave_nothing_stale(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    live(alice)
    another(office)
    news = alice.locator("#queue-news")
    held_back: list[Route] = []

    def hold_back(route: Route) -> None:
        held_back.append(route)

    alice.route("**/queue/more/*", hold_back)
    news.get_by_role("link", name="1 new").click()

    # While the cards are on their way, the link that asked for them is drawn anew.
    another(office, "Yet another")
    expect(news.get_by_role("link", name="2 new")).to_be_visible()
    held_back[0].continue_()

    expect(rows(alice)).to_have_count(4)
    expect(news.get_by_role("link")).to_have_count(0)


def test_a_first_comment_reaches_those_who_only_read(opened: Opened, office: Office) -> None:
    page = opened(scenery.person("ines", Role.AUDITOR))
    page.goto("/queue/")
    live(page)
    expect(card(page, office)).not_to_contain_text("Does Ana know of it?")

    approval = Approval.objects.get(pk=office.held)
    comments.say(approval, by=office.alice, text="Does Ana know of it?")
    rung("queue")

    expect(card(page, office)).to_contain_text("Does Ana know of it?")


def test_an_empty_queue_fills_by_itself(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    for n in (0, 1):
        rows(alice).nth(n).click()
        refuse(alice.locator("[data-card]:not(.decided)"))
        expect(alice.locator(".line-of.decided")).to_have_count(n + 1)
    alice.goto("/queue/")
    expect(alice.get_by_text("No pending approvals")).to_be_visible()
    live(alice)

    another(office)
    alice.get_by_role("link", name="1 new").click()

    expect(alice.locator("[data-card]")).to_have_count(1)
    expect(alice.get_by_text("No pending approvals")).to_be_hidden()


@pytest.mark.smoke
def test_two_windows_see_who_was_first(opened: Opened, alice: Page, office: Office) -> None:
    carol = opened(scenery.person("carol", Role.APPROVER))
    alice.goto("/queue/")
    carol.goto("/queue/")
    live(carol)

    refuse(card(alice, office))

    # Told by itself, without a reload.
    expect(card(carol, office)).to_contain_text("Denied by alice")
    expect(card(carol, office).get_by_role("button", name="Approve")).to_have_count(0)
    expect(rows(carol).first).to_contain_text("Denied")


def test_the_slower_of_two_is_told(opened: Opened, alice: Page, office: Office) -> None:
    carol = opened(scenery.person("carol", Role.APPROVER))
    # Her browser never hears of it.
    carol.route_web_socket("**/live/**", lambda socket: None)
    carol.goto("/queue/")
    alice.goto("/queue/")
    refuse(card(alice, office))
    expect(card(alice, office)).to_contain_text("Denied by alice")

    card(carol, office).get_by_role("button", name="Approve").click()

    expect(card(carol, office)).to_contain_text("alice answered first")
    assert state(office) == State.DENIED


@pytest.mark.smoke
def test_without_javascript_one_reads_approves_and_refuses(opened: Opened, office: Office) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/queue/")
    expect(page.get_by_text("Minutes of Tuesday", exact=True)).to_be_visible()

    card(page, office).get_by_role("button", name="Approve").click()
    expect(page.get_by_text("You approved mailer.send_mail for scout.")).to_be_visible()
    assert state(office) == State.QUEUED

    refuse(page.locator("[data-card]"), "not now")
    expect(page.get_by_text("You denied files.write_file for ledger-clerk.")).to_be_visible()
    expect(page.get_by_text("No pending approvals")).to_be_visible()


def test_a_session_that_ended_leads_to_sign_in_and_back(alice: Page, office: Office) -> None:
    alice.route_web_socket("**/live/**", lambda socket: None)
    alice.goto("/queue/")
    Session.objects.all().delete()

    card(alice, office).get_by_role("button", name="Approve").click()

    alice.wait_for_url("**/sign-in/?next=/queue/&ended=1")
    assert state(office) == State.HELD


def test_a_lost_connection_is_shown_and_what_was_missed_is_read_again(
    opened: Opened, office: Office, stack: Stack
) -> None:
    stack.web.restart()
    page = opened(office.alice)
    sockets = []

    def through(socket):
        server = socket.connect_to_server()
        sockets.append(socket)
        socket.on_message(server.send)
        server.on_message(socket.send)

    page.route_web_socket("**/live/**", through)
    page.goto("/queue/")
    live(page)

    sockets[0].close(code=1012)
    expect(page.locator("[data-connection]")).to_have_text("Reconnecting")
    scenery.call(office.scout, office.send, {**scenery.MAIL, "subject": "Missed"}, State.HELD)

    live(page)
    expect(page.get_by_role("link", name="1 new")).to_be_visible()


def test_whoever_is_signed_out_elsewhere_is_signed_out_here(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    live(alice)

    Session.objects.all().delete()
    rung("queue")

    alice.wait_for_url("**/sign-in/?next=/queue/&ended=1")


def test_all_of_an_agent_are_denied_after_a_look_at_what_that_means(
    alice: Page, office: Office
) -> None:
    another(office)
    alice.goto("/queue/?agent=scout")
    alice.get_by_role("link", name="Deny all of scout …").press("Enter")
    expect(alice.get_by_text("2 calls get your vote to deny them")).to_be_visible()
    alice.get_by_role("link", name="Begin an emergency stop instead").press("Enter")
    expect(alice.get_by_role("heading", name="Suspend agent scout?")).to_be_visible()
    alice.go_back()
    alice.get_by_role("link", name="Cancel").press("Enter")
    expect(rows(alice)).to_have_count(3)

    alice.goto("/queue/?agent=scout")
    alice.get_by_role("link", name="Deny all of scout …").click()
    alice.get_by_label("too much").press("Space")
    alice.get_by_label("Comment to the agent").focus()
    alice.keyboard.type("All of it.")
    alice.get_by_role("button", name="Deny 2 calls").press("Enter")

    expect(alice.get_by_text("You denied 2 calls.")).to_be_visible()
    expect(rows(alice)).to_have_count(1)
    assert state(office) == State.DENIED
