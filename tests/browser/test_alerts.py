"""A notification and a sound in an open tab, for browsers whose person chose them."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_queue import another, live

pytestmark = pytest.mark.long

HERE = "/profile/notifications/"
NOTIFICATION = "Show a notification while another window has the focus"
# The headless shell shows none and plays nothing: what it is given is written down.
WRITTEN_DOWN = """
  window.given = [];
  window.answer = "granted";
  window.Notification = class extends EventTarget {
    static get permission() { return window.answer; }
    static async requestPermission() { return window.answer; }
    constructor(title, { tag }) { super(); given.push([title, tag]); }
  };
  window.AudioContext = class extends AudioContext {
    createOscillator() { given.push("tone"); return super.createOscillator(); }
  };
  document.hasFocus = () => Boolean(window.isFocused);
"""
TONES = ["tone", "tone"]
SHOWN = [["Approval needed (3)", "approval.needed"]]


@pytest.fixture
def page(opened: Opened, office: Office) -> Page:
    page = opened(office.alice)
    page.context.add_init_script(WRITTEN_DOWN)
    page.goto(HERE)
    return page


def choose(page: Page, label: str) -> None:
    """With the keyboard."""
    box = page.get_by_label(label)
    box.focus()
    page.keyboard.press("Space")


def are_given(page: Page, number: int) -> None:
    while len(page.evaluate("given")) < number:
        page.wait_for_timeout(20)


def count(page: Page, pending: int) -> None:
    expect(page.locator("#queue-count")).to_contain_text(str(pending))


def test_both_are_off_at_first(page: Page, office: Office) -> None:
    live(page)
    another(office)

    count(page, 3)

    assert page.evaluate("given") == []


def test_another_pending_call_is_shown_and_heard_and_names_nothing_of_it(
    page: Page, office: Office
) -> None:
    choose(page, NOTIFICATION)
    choose(page, "Play a sound")
    # Heard once, as it is chosen.
    are_given(page, 2)
    # Chosen for this browser: on the next page too.
    page.goto("/calls/")
    live(page)

    another(office)

    are_given(page, 3)
    assert page.evaluate("given") == [*TONES, *SHOWN]


def test_of_two_tabs_one_gives_it(page: Page, office: Office) -> None:
    choose(page, NOTIFICATION)
    second = page.context.new_page()
    tabs = [page, second]
    for tab in tabs:
        tab.goto("/queue/")
        live(tab)

    another(office)

    for tab in tabs:
        count(tab, 3)
    while not (shown := [one for tab in tabs for one in tab.evaluate("given")]):
        page.wait_for_timeout(20)
    assert shown == SHOWN


def test_whoever_looks_at_the_page_hears_it_only(page: Page, office: Office) -> None:
    choose(page, NOTIFICATION)
    choose(page, "Play a sound")
    page.goto("/queue/")
    live(page)
    page.evaluate("window.isFocused = true")

    another(office)

    are_given(page, 2)
    assert page.evaluate("given") == TONES


def test_a_browser_that_allows_none_says_so(page: Page, office: Office) -> None:
    page.evaluate("window.answer = 'denied'")

    choose(page, NOTIFICATION)

    expect(page.locator("[data-alerts] [role=status]")).to_contain_text(
        "The browser does not let Countersign show notifications"
    )
    expect(page.get_by_label(NOTIFICATION)).not_to_be_checked()


def test_where_the_browser_plays_no_sound_yet_a_notification_is_shown_all_the_same(
    page: Page, office: Office
) -> None:
    choose(page, NOTIFICATION)
    choose(page, "Play a sound")
    # As in a tab in which nothing was pressed.
    page.context.add_init_script("AudioContext.prototype.resume = () => new Promise(() => {});")
    page.goto("/queue/")
    live(page)

    another(office)

    are_given(page, 1)
    assert page.evaluate("given") == SHOWN
    # No lock is kept from the other tabs.
    assert page.evaluate("navigator.locks.request('alert', () => true)")
