"""The queue as an approver uses it, several times a day."""

from django.contrib.sessions.models import Session
from playwright.sync_api import Locator, Page, expect

from accounts.roles import Role
from calls.models import Call
from calls.states import State
from tests.browser.conftest import Opened, rung
from tests.browser.scene import Office
from tests.console import scenery
from tests.processes import Stack


def card(page: Page, office: Office) -> Locator:
    return page.locator(f"#card-{office.held}")


def state(office: Office) -> str:
    return Call.objects.get(pk=office.held).state


def another(office: Office, subject: str = "Another") -> None:
    arguments = {**scenery.MAIL, "subject": subject}
    scenery.call(office.scout, office.send, arguments, State.HELD)
    rung("queue")


def live(page: Page) -> None:
    expect(page.locator("[data-connection]")).to_have_text("Live")


def test_approving_changes_the_card_where_it_stands(alice: Page, office: Office) -> None:
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


def test_refusing_with_a_reason_by_keyboard(alice: Page, office: Office) -> None:
    alice.goto("/queue/")

    card(alice, office).get_by_label("Reason").focus()
    alice.keyboard.type("Not to that address.")
    alice.keyboard.press("Tab")
    alice.keyboard.press("Tab")
    expect(card(alice, office).get_by_role("button", name="Refuse")).to_be_focused()
    alice.keyboard.press("Enter")

    expect(card(alice, office)).to_contain_text("Refused by alice")
    expect(card(alice, office)).to_contain_text("Not to that address.")
    assert state(office) == State.DENIED


def test_enter_in_the_reason_decides_nothing(alice: Page, office: Office) -> None:
    alice.goto("/queue/")

    card(alice, office).get_by_label("Reason").focus()
    alice.keyboard.type("Hm.")
    alice.keyboard.press("Enter")

    expect(card(alice, office).get_by_label("Reason")).to_have_value("Hm.\n")
    assert state(office) == State.HELD


def test_j_and_k_walk_the_cards(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    cards = alice.locator("[data-card]")

    cards.first.focus()
    alice.keyboard.press("j")
    expect(cards.nth(1)).to_be_focused()
    alice.keyboard.press("k")
    expect(cards.first).to_be_focused()


def test_new_calls_are_announced_and_move_nothing(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    live(alice)
    card(alice, office).get_by_label("Reason").fill("half a thou")
    place = card(alice, office).bounding_box()

    another(office)

    news = alice.get_by_role("status").get_by_role("link", name="1 new")
    expect(news).to_be_visible()
    assert card(alice, office).bounding_box() == place
    expect(alice.locator("#queue-count")).to_contain_text("3")
    news.click()
    expect(alice.locator("[data-card]")).to_have_count(3)
    expect(alice.locator("[data-card]").last).to_contain_text("Another")
    expect(card(alice, office).get_by_label("Reason")).to_have_value("half a thou")
    expect(news).to_have_count(0)


def test_an_empty_queue_fills_by_itself(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    refuse = alice.get_by_role("button", name="Refuse")
    for left in (1, 0):
        refuse.first.click()
        expect(refuse).to_have_count(left)
    alice.goto("/queue/")
    expect(alice.get_by_text("Nothing waits")).to_be_visible()
    live(alice)

    another(office)
    alice.get_by_role("link", name="1 new").click()

    expect(alice.locator("[data-card]")).to_have_count(1)
    expect(alice.get_by_text("Nothing waits")).to_be_hidden()


def test_two_windows_see_who_was_first(opened: Opened, alice: Page, office: Office) -> None:
    carol = opened(scenery.person("carol", Role.APPROVER))
    alice.goto("/queue/")
    carol.goto("/queue/")
    live(carol)

    card(alice, office).get_by_role("button", name="Refuse").click()

    # Told by itself, without a reload.
    expect(card(carol, office)).to_contain_text("Refused by alice")
    expect(card(carol, office).get_by_role("button")).to_have_count(0)


def test_the_slower_of_two_is_told(opened: Opened, alice: Page, office: Office) -> None:
    carol = opened(scenery.person("carol", Role.APPROVER))
    # Her browser never hears of it.
    carol.route_web_socket("**/live/", lambda socket: None)
    carol.goto("/queue/")
    alice.goto("/queue/")
    card(alice, office).get_by_role("button", name="Refuse").click()
    expect(card(alice, office)).to_contain_text("Refused by alice")

    card(carol, office).get_by_role("button", name="Approve").click()

    expect(card(carol, office)).to_contain_text("alice answered first")
    assert state(office) == State.DENIED


def test_without_javascript_one_reads_approves_and_refuses(opened: Opened, office: Office) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/queue/")
    expect(page.get_by_text("Minutes of Tuesday", exact=True)).to_be_visible()

    card(page, office).get_by_role("button", name="Approve").click()
    expect(page.get_by_text("You approved mailer.send_mail for scout.")).to_be_visible()
    assert state(office) == State.QUEUED

    page.locator("[data-card]").get_by_label("Reason").fill("No.")
    page.locator("[data-card]").get_by_role("button", name="Refuse").click()
    expect(page.get_by_text("You refused files.write_file for ledger-clerk.")).to_be_visible()
    expect(page.get_by_text("Nothing waits")).to_be_visible()


def test_a_session_that_ended_leads_to_sign_in_and_back(alice: Page, office: Office) -> None:
    alice.route_web_socket("**/live/", lambda socket: None)
    alice.goto("/queue/")
    Session.objects.all().delete()

    card(alice, office).get_by_role("button", name="Approve").click()

    alice.wait_for_url("**/sign-in/?next=/queue/")
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

    page.route_web_socket("**/live/", through)
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

    alice.wait_for_url("**/sign-in/?next=/queue/")


def test_a_button_that_comes_to_nothing_says_so(opened: Opened, office: Office) -> None:
    page = opened(office.alice, may_complain=True)
    page.goto("/queue/")
    page.route("**/approve/", lambda route: route.abort())

    card(page, office).get_by_role("button", name="Approve").click()

    expect(page.get_by_text("nothing was done")).to_be_visible()
    expect(card(page, office).get_by_role("button", name="Approve")).to_be_enabled()
    assert state(office) == State.HELD
