"""Getting in, as somebody who sits before it."""

import pytest
from playwright.sync_api import Page, expect

from accounts import services
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_factors import phone, picture, press
from tests.console.scenery import PASSWORD
from tests.processes import Stack


@pytest.mark.smoke
def test_a_password_typed_and_sent_by_enter(opened: Opened) -> None:
    page = opened()
    page.goto("/calls/")

    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")

    page.wait_for_url("**/calls/")
    expect(page.get_by_role("banner").get_by_text("alice")).to_be_visible()
    expect(page.get_by_text("Approver, Auditor, Operator")).to_be_visible()


def test_a_wrong_password_is_said_where_one_looks(opened: Opened) -> None:
    page = opened()
    page.goto("/sign-in/")
    page.get_by_role("link", name="Countersign").press("Enter")
    page.wait_for_url("**/sign-in/?next=/")

    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("guess")
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("alert")).to_contain_text("No person here")


def test_a_sign_in_link_asks_before_it_is_used(
    opened: Opened, office: Office, stack: Stack
) -> None:
    page = opened()
    page.goto("/" + services.sign_in_link(office.bob).split("/", 3)[3])

    page.get_by_role("button", name="Sign in").click()

    page.wait_for_url("**/overview/")
    expect(page.get_by_role("banner").get_by_text("bob")).to_be_visible()


@pytest.mark.parametrize("chinese", [False, True], ids=["en", "zh-hans"])
def test_a_link_over_somebody_elses_session_signs_out_first(
    opened: Opened, office: Office, stack: Stack, chinese: bool
) -> None:
    page = opened(office.alice)
    said = phone(page, stack.web_url, chinese)
    address = "/" + services.sign_in_link(office.bob).split("/", 3)[3]
    page.goto(address)
    picture(page, "link-over-a-session")
    press(page, "link", said("Stay signed in as alice", "保持登录为 alice"))
    page.wait_for_url("**/queue/")
    page.goto(address)
    press(page, "button", said("Sign out and go on", "退出登录并继续"))
    # Whose language it was is forgotten with them.
    press(page, "button", "Sign in")

    page.wait_for_url("**/overview/")
    expect(page.get_by_role("banner").get_by_text("bob")).to_be_visible()


def test_the_theme_is_chosen_before_one_is_known(opened: Opened, office: Office) -> None:
    page = opened()
    page.goto("/sign-in/?next=/calls/")
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Light", exact=True).press("Enter")
    page.get_by_role("link", name="Countersign").click()
    page.wait_for_url("**/sign-in/?next=/")

    page.goto("/" + services.sign_in_link(office.bob).split("/", 3)[3])
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="System").press("Space")
    page.get_by_role("button", name="Light", exact=True).click()
    page.get_by_role("button", name="Dark").click()
    page.get_by_role("button", name="Sign in").press("Enter")

    page.wait_for_url("**/overview/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_link_that_was_used_leads_to_the_password(opened: Opened, office: Office) -> None:
    address = "/" + services.sign_in_link(office.bob).split("/", 3)[3]
    page = opened()
    page.goto(address)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/overview/")

    # It is answered by 403: the browser says so on its console.
    other = opened(will_complain_of=("403",))
    other.goto(address)
    other.get_by_role("button", name="Sign in").press("Enter")
    expect(other.get_by_role("alert")).to_be_visible()
    other.get_by_role("link", name="Sign in with a password").press("Enter")
    other.wait_for_url("**/sign-in/")


@pytest.mark.smoke
def test_signing_out(alice: Page) -> None:
    alice.goto("/catalogue/")

    alice.get_by_role("button", name="Sign out").click()

    alice.wait_for_url("**/sign-in/**")


def test_the_theme_is_chosen_at_once_and_kept(alice: Page) -> None:
    alice.goto("/catalogue/")
    dark = alice.get_by_role("button", name="Dark")

    dark.click()

    expect(dark).to_have_attribute("aria-pressed", "true")
    background = "getComputedStyle(document.body).backgroundColor"
    at_once = alice.evaluate(background)
    alice.reload()
    assert alice.evaluate(background) == at_once
    alice.get_by_role("button", name="Light", exact=True).click()
    assert alice.evaluate(background) != at_once
    alice.get_by_role("button", name="System").press("Enter")
    expect(alice.locator("html")).to_have_attribute("data-theme", "system")


def test_the_theme_is_chosen_without_javascript(opened: Opened, office: Office) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/calls/")

    page.get_by_role("button", name="Dark").click()

    page.wait_for_url("**/calls/")
    assert 'data-theme="dark"' in page.content()
