"""Pages as a person finds them: by keyboard, again after a reload, with what was hidden shown."""

from playwright.sync_api import Page, expect

from tests.browser.scene import Office


def test_the_keyboard_skips_the_navigation(alice: Page) -> None:
    alice.goto("/catalogue/")

    alice.keyboard.press("Tab")
    expect(alice.get_by_role("link", name="Skip to the page")).to_be_focused()
    alice.keyboard.press("Enter")

    expect(alice.locator("#main")).to_be_focused()


def test_filters_survive_reload_and_the_back_button(alice: Page) -> None:
    alice.goto("/catalogue/")
    narrow = alice.get_by_role("navigation", name="Narrow by")
    narrow.get_by_role("link", name="code", exact=True).click()
    alice.get_by_role("link", name="code.search").click()
    expect(alice.get_by_role("heading", name="code.search")).to_be_visible()

    alice.go_back()
    alice.reload()

    expect(alice.get_by_role("link", name="Server code Remove")).to_be_visible()
    expect(alice.get_by_role("link", name="calculator.add")).to_have_count(0)


def test_the_exact_time_is_there_on_focus(alice: Page, office: Office) -> None:
    alice.goto("/calls/")
    time = alice.locator("time.when").first

    time.focus()

    shown = time.evaluate("(e) => getComputedStyle(e, '::after').content")
    assert "UTC" in shown
    assert time.get_attribute("data-exact") in shown


def test_a_hidden_character_is_shown_on_a_tools_page(alice: Page, office: Office) -> None:
    alice.goto(f"/tools/{office.sly.exposed_name}/")

    expect(alice.locator("main .hidden-character").first).to_have_text("⟦U+200B⟧⟦U+200B⟧")
    expect(alice.get_by_text("This definition holds 3 characters")).to_be_visible()


def test_an_operator_publishes_with_the_keyboard(alice: Page, office: Office) -> None:
    alice.goto(f"/tools/{office.sly.exposed_name}/")

    alice.get_by_role("link", name="Review and publish").press("Enter")
    alice.get_by_label(f"Publish {office.sly.exposed_name}").press("Space")
    alice.get_by_label("Why it is published anyway").fill("We know it.")
    alice.get_by_role("button", name="Publish selected").focus()
    alice.keyboard.press("Enter")

    expect(alice.get_by_text("Published: 1.")).to_be_visible()
