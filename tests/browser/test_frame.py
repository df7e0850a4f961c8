"""What stands around every page: finding, keys, the session that ends in mid-work."""

import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from accounts.roles import Role
from calls.models import Call
from calls.record.states import State
from tests.browser import reading
from tests.browser.conftest import Opened
from tests.browser.every_page import everybody
from tests.browser.scene import Office
from tests.console import scenery
from tests.console.scenery import PASSWORD


@pytest.mark.smoke
def test_ctrl_k_finds_a_tool_by_keyboard_alone(alice: Page) -> None:
    alice.goto("/calls/")

    alice.keyboard.press("Control+k")
    box = alice.get_by_role("combobox", name="Pages, tools")
    expect(box).to_be_focused()
    alice.keyboard.type("send_m")
    expect(alice.locator("#palette .places a")).to_have_count(1)
    # The box keeps the focus, and says which option Enter opens.
    expect(box).to_have_attribute("aria-expanded", "true")
    option = alice.get_by_role("listbox").get_by_role("option", name="mailer.send_mail")
    expect(option).to_have_attribute("aria-selected", "true")
    for key in ("ArrowDown", "ArrowUp"):
        alice.keyboard.press(key)
        expect(box).to_be_focused()
        expect(box).to_have_attribute("aria-activedescendant", str(option.get_attribute("id")))
    # While the last letter is looked up, Enter shows what was found on a page of its own.
    expect(box).not_to_have_class(re.compile("htmx-request"))
    alice.keyboard.press("Enter")

    alice.wait_for_url("**/tools/mailer.send_mail/")


def test_the_palette_opens_by_click_and_slash_and_closes(alice: Page) -> None:
    alice.goto("/calls/")
    palette = alice.get_by_role("dialog", name="Find")
    opener = alice.get_by_role("link", name="Find", exact=True)

    opener.click()
    expect(palette).to_be_visible()
    alice.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    expect(opener).to_be_focused()

    alice.keyboard.press("/")
    expect(palette).to_be_visible()
    palette.get_by_role("button", name="Close").click()
    expect(palette).to_be_hidden()
    opener.press("Enter")
    alice.keyboard.type("send_m")
    palette.get_by_role("option", name="mailer.send_mail").click()
    alice.wait_for_url("**/tools/mailer.send_mail/")


def test_the_palettes_options_are_walked_round(alice: Page) -> None:
    alice.goto("/calls/")
    alice.keyboard.press("Control+k")
    box = alice.get_by_role("combobox", name="Pages, tools")
    options = alice.get_by_role("listbox").get_by_role("option")
    expect(options.nth(2)).to_be_visible()
    expect(options.first).to_have_attribute("aria-selected", "true")

    alice.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-activedescendant", str(options.last.get_attribute("id")))
    alice.keyboard.press("ArrowDown")
    alice.keyboard.press("ArrowDown")
    there = options.nth(1).get_attribute("href")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    alice.keyboard.press("Enter")

    alice.wait_for_url(f"**{there}")


def test_what_the_palette_does_not_find_leads_to_the_page_that_says_so(alice: Page) -> None:
    alice.goto("/calls/")
    alice.keyboard.press("Control+k")
    alice.keyboard.type("zzz")
    expect(alice.locator("#palette .nothing")).to_be_visible()
    alice.keyboard.press("Enter")

    alice.wait_for_url("**/find/?q=zzz")
    expect(alice.get_by_text("Nothing here is called “zzz”.").first).to_be_visible()
    alice.get_by_role("main").locator('a[href="/audit/?text=zzz"]').press("Enter")
    alice.wait_for_url("**/audit/?text=zzz")


def test_every_place_has_its_key(alice: Page) -> None:
    alice.goto("/calls/")
    places = alice.locator(".tabs [data-key]")
    pairs = [(one.get_attribute("data-key"), one.get_attribute("href")) for one in places.all()]
    assert len(pairs) >= 7
    for key, address in pairs:
        alice.keyboard.press("g")
        alice.keyboard.press(str(key))
        alice.wait_for_url(f"**{address}")
        expect(alice.locator("h1")).to_be_visible()


PLACES = [
    ("/access/", "Settings"),
    ("/access-review/", "Settings"),
    ("/roles/", "Settings"),
    ("/role-tags/", "Settings"),
    ("/service-accounts/", "Service accounts"),
    ("/provisioning/", "Provisioning"),
    ("/workload/", "Approval workload"),
    ("/emergency-stops/", "Emergency stops"),
    ("/notifications/", "Notifications"),
    ("/servers/mailer/", "Servers"),
    ("/servers/mailer/usage/", "Servers"),
    ("/servers/mailer/trouble/", "Servers"),
    ("/servers/mailer/review/", "Servers"),
    ("/servers/mailer/cases/", "Servers"),
    ("/tools/mailer.send_mail/", "Catalogue"),
]


def test_the_current_place_is_marked_and_in_view_on_a_short_screen(
    opened: Opened, office: Office
) -> None:
    page = opened(scenery.person("ada", *Role), viewport={"width": 1280, "height": 500})
    for address, place in PLACES:
        page.goto(address)
        current = page.locator(".tabs [aria-current]")
        expect(current).to_have_text(re.compile(f"^\\s*{place}"))
        expect(current).to_be_in_viewport(ratio=1)
        tabs = page.locator("nav.tabs").bounding_box()
        box = current.bounding_box()
        assert tabs
        assert box
        assert box["y"] + box["height"] <= tabs["y"] + tabs["height"], address


def test_all_places_fit_on_a_usual_screen(opened: Opened, office: Office) -> None:
    page = opened(scenery.person("ada", *Role), viewport={"width": 1280, "height": 860})
    page.goto("/notifications/")
    expect(page.locator(".tabs a")).to_have_count(20)
    assert page.locator("nav.tabs").evaluate("it => it.scrollHeight <= it.clientHeight")


BAR = [
    *((address, "Settings") for address, _place in PLACES[:9]),
    ("/retention/", "Settings"),
    *((address, "Catalogue") for address, _place in PLACES[9:]),
]


def test_on_a_phone_the_bar_marks_where_a_page_belongs(opened: Opened, office: Office) -> None:
    page = opened(scenery.person("ada", *Role), viewport={"width": 360, "height": 780})
    for address, place in BAR:
        page.goto(address)
        within = page.locator(".tabs > :is([aria-current], [data-within]):visible")
        expect(within).to_have_text(re.compile(f"^\\s*{place}"))


def test_on_a_phone_the_overview_is_one_tap_away(opened: Opened, office: Office) -> None:
    page = opened(scenery.person("ada", *Role), viewport={"width": 360, "height": 780})
    for address, _place in [*BAR, ("/calls/unknown/", ""), ("/people/", ""), ("/queue/", "")]:
        page.goto(address)
        page.locator(".tabs").get_by_role("link", name="Overview").click()
        expect(page).to_have_url(re.compile("/overview/$"))


def test_the_palette_is_a_page_without_javascript(opened: Opened, office: Office) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/calls/")

    page.get_by_role("link", name="Find", exact=True).click()
    page.get_by_label("Name").fill("scout")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="scout").click()

    page.wait_for_url("**/agents/scout/")


def test_the_sheet_of_shortcuts_and_going_by_keys(alice: Page) -> None:
    alice.goto("/calls/")
    sheet = alice.get_by_role("dialog", name="Keyboard shortcuts")

    alice.keyboard.press("?")
    expect(sheet).to_be_visible()
    expect(sheet.get_by_text("Approve", exact=True)).to_be_visible()
    alice.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    alice.get_by_role("button", name="Keyboard shortcuts").click()
    sheet.get_by_role("button", name="Close").click()

    alice.keyboard.press("g")
    alice.keyboard.press("q")
    alice.wait_for_url("**/queue/")


def test_keys_of_one_letter_can_be_switched_off(alice: Page) -> None:
    alice.goto("/calls/")
    sheet = alice.get_by_role("dialog", name="Keyboard shortcuts")
    alice.keyboard.press("?")
    sheet.get_by_label("Use shortcuts of a single key").uncheck()
    alice.keyboard.press("Escape")

    alice.keyboard.press("?")
    expect(sheet).to_be_hidden()
    alice.reload()
    alice.keyboard.press("/")
    expect(alice.get_by_role("dialog", name="Find")).to_be_hidden()
    alice.keyboard.press("Control+k")
    expect(alice.get_by_role("dialog", name="Find")).to_be_visible()


def test_the_person_the_role_and_the_time_zone_are_in_sight(alice: Page) -> None:
    alice.goto("/calls/")

    who = alice.get_by_role("banner").locator(".who")
    expect(who).to_contain_text("alice")
    expect(who).to_contain_text("Approver, Auditor, Operator")
    expect(who).to_contain_text("UTC")


def sign_in(page: Page) -> None:
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_a_session_that_ends_in_mid_work_keeps_what_was_typed(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice)
    # It hears nothing of the end by itself.
    page.route_web_socket("**/live/**", lambda socket: None)
    page.goto("/queue/")
    reason = page.locator(f"#card-{office.held}").get_by_label("Comment to the agent")
    reason.fill("I was in the middle of")
    Session.objects.all().delete()

    page.locator(f"#card-{office.held}").get_by_role("button", name="Approve").click()
    page.wait_for_url("**/sign-in/?next=/queue/&ended=1")
    expect(page.get_by_text("Your session ended")).to_be_visible()
    expect(page.get_by_text("kept in this tab")).to_be_visible()
    sign_in(page)

    page.wait_for_url("**/queue/")
    expect(reason).to_have_value("I was in the middle of")
    expect(page.get_by_text("What you had typed is back")).to_be_visible()
    assert Call.objects.get(pk=office.held).state == State.HELD


def test_what_was_typed_is_there_on_the_way_back_and_for_no_other_visit(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice)
    page.route_web_socket("**/live/**", lambda socket: None)
    address = f"/queue/{office.held}/"
    page.goto(address)
    reason = page.get_by_label("Comment to the agent")
    reason.fill("I was in the middle of")

    page.goto("/calls/")
    page.go_back()

    expect(reason).to_have_value("I was in the middle of")
    expect(page.get_by_text("What you had typed is back")).to_be_hidden()
    page.goto("/calls/")
    page.goto(address)
    expect(reason).to_have_value("")


def test_a_plain_form_comes_back_to_its_page_after_the_sign_in(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice)
    page.route_web_socket("**/live/**", lambda socket: None)
    page.goto("/toolsets/office/")
    title = page.get_by_label("Title")
    title.fill("A better title")
    Session.objects.all().delete()

    title.press("Enter")
    page.wait_for_url("**/sign-in/?next=/toolsets/office/&ended=1")
    sign_in(page)

    page.wait_for_url("**/toolsets/office/")
    expect(title).to_have_value("A better title")


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
@pytest.mark.parametrize("address", ["/new/server/", "/tools/mailer.send_mail/"])
def test_tabs_on_a_phone_do_not_cover_each_other(
    opened: Opened, office: Office, address: str, locale: str
) -> None:
    page = opened(everybody("ada"), locale=locale, viewport={"width": 360, "height": 780})
    page.goto(address)
    expect(page.locator("nav.pages a").first).to_be_visible()

    assert page.evaluate(reading.SQUEEZED) == []


TOPS = "every => every.map(one => Math.round(one.getBoundingClientRect().top))"


@pytest.mark.parametrize("scripted", [True, False])
def test_on_a_phone_what_is_seldom_done_is_in_a_sheet(
    opened: Opened, office: Office, scripted: bool
) -> None:
    size = {"width": 360, "height": 780}
    page = opened(everybody("ada"), viewport=size, java_script_enabled=scripted)
    page.goto("/servers/mailer/")
    sheet = page.locator(".deeds")
    for name in ("Usage", "Who may do what"):
        expect(page.get_by_role("link", name=name)).to_be_hidden()
    # What is left stands on one line.
    assert len(set(page.locator(".head .button:visible").evaluate_all(TOPS))) == 1

    more = page.get_by_role("button", name="More")
    more.press("Enter")
    expect(sheet).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    expect(more).to_be_focused()
    more.click()
    page.get_by_role("link", name="Usage").click()

    page.wait_for_url("**/servers/mailer/usage/")


def test_elsewhere_all_is_beside_it(opened: Opened, office: Office) -> None:
    page = opened(everybody("ada"), viewport={"width": 1280, "height": 860})
    page.goto("/servers/mailer/")
    expect(page.get_by_role("button", name="More")).to_be_hidden()
    buttons = page.locator(".head .button:visible")
    for name in ("Refresh now", "Usage", "Who may do what", "Edit"):
        expect(buttons.filter(has_text=name)).to_be_visible()
    assert len(set(buttons.evaluate_all(TOPS))) == 1


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_tabs_on_a_phone_stand_on_one_line(opened: Opened, office: Office, locale: str) -> None:
    page = opened(everybody("ada"), locale=locale, viewport={"width": 360, "height": 780})
    page.goto("/calls/")
    icons = page.locator(".tabs > a:visible > .icon")
    page.locator("#queue-count").evaluate("it => { it.className = ''; it.replaceChildren(); }")
    assert len(set(icons.evaluate_all(TOPS))) == 1


def test_a_link_does_not_underline_the_letters_of_an_emblem(alice: Page) -> None:
    alice.goto("/catalogue/")
    emblem = alice.locator("main a > .emblem[data-letters]").first
    before = emblem.screenshot()
    plain = "them => them.forEach(it => it.style.textDecoration = 'none')"
    alice.locator("main a").evaluate_all(plain)
    assert emblem.screenshot() == before


def test_on_a_phone_the_way_out_of_a_form_is_in_line(opened: Opened, office: Office) -> None:
    page = opened(everybody("ada"), viewport={"width": 360, "height": 780})
    page.goto("/new/escalation-policy/")
    actions = page.locator("main .actions > .button")
    expect(actions).to_have_text(["Save the escalation policy", "Cancel"])
    assert len(set(actions.evaluate_all(TOPS))) == 1
