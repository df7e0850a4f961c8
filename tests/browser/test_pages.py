"""Every page in every size and theme: readable, reachable, and nothing to complain of."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opened
from tests.browser.scene import Office

WIDTHS = [1280, 360]


def addresses(office: Office) -> list[str]:
    return [
        "/sign-in/",
        "/catalogue/",
        "/catalogue/?q=mail&server=mailer",
        "/catalogue/?q=nothing+like+it",
        "/servers/words/",
        f"/tools/{office.search.exposed_name}/",
        f"/tools/{office.sly.exposed_name}/",
        "/queue/",
        f"/queue/{office.held}/",
        "/calls/",
        f"/calls/{office.running}/",
        f"/calls/{office.pictured}/",
        f"/calls/{office.lost}/",
        "/audit/",
        "/audit/?state=held&range=24h",
        "/settings/",
        "/agents/",
        "/agents/scout/",
        "/toolsets/",
        "/toolsets/office/?q=write",
        "/toolsets/office/connect/",
        "/new/server/",
        "/new/server/?by=paste",
        "/servers/words/review/",
        "/servers/mailer/edit/",
        "/policies/",
    ]


# Every visible piece of text, with the contrast to what is painted behind it. A canvas turns any
# notation of a colour into bytes.
CONTRASTS = """() => {
  const context = Object.assign(document.createElement("canvas"), {width: 1, height: 1})
    .getContext("2d", {willReadFrequently: true});
  const bytes = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = bytes(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
    if (element.closest("script, option, .visually-hidden")) continue;
    const [a, b] = [luminance(bytes(getComputedStyle(element).color)), luminance(behind(element))]
      .sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${element.className}: ${node.data.trim()}`);
  }
  return found;
}"""

# WCAG 2.2, 2.5.8: controls that do not stand in a sentence.
SMALL_TARGETS = """() => [...document.querySelectorAll("button, input, select, textarea, .tabs a")]
  .filter((e) => e.type !== "hidden" && e.checkVisibility({visibilityProperty: true}))
  .filter((e) => { const r = e.getBoundingClientRect(); return r.width < 24 || r.height < 24; })
  .filter((e) => !["checkbox", "radio"].includes(e.type))
  .map((e) => e.outerHTML.slice(0, 120))"""

NAMELESS = """() => [...document.querySelectorAll("a, button, input, select, textarea")]
  .filter((e) => e.type !== "hidden" && e.checkVisibility())
  .filter((e) => !(e.textContent.trim() || e.labels?.length || e.getAttribute("aria-label")
                   || e.querySelector("[aria-label]")))
  .map((e) => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_can_be_read_and_used(
    opened: Opened, office: Office, width: int, theme: str
) -> None:
    viewport = {"width": width, "height": 800}
    scheme = "dark" if theme == "dark" else "light"
    stranger = opened(viewport=viewport, color_scheme=scheme)
    alice = opened(office.alice, viewport=viewport, color_scheme=scheme)

    for address in addresses(office):
        page = stranger if address == "/sign-in/" else alice
        page.goto(address)
        page.wait_for_load_state("networkidle")

        assert page.evaluate(CONTRASTS) == [], address
        assert page.evaluate(SMALL_TARGETS) == [], address
        assert page.evaluate(NAMELESS) == [], address
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{address} scrolls sideways by {wide} px"
        assert page.locator("h1").count() == 1, address
        doubled = "[...document.querySelectorAll('[id]')].map((e) => e.id)"
        ids = page.evaluate(doubled)
        assert len(ids) == len(set(ids)), address


def test_the_keyboard_skips_the_navigation(alice: Page) -> None:
    alice.goto("/catalogue/")

    alice.keyboard.press("Tab")
    expect(alice.get_by_role("link", name="Skip to the page")).to_be_focused()
    alice.keyboard.press("Enter")

    expect(alice.locator("#main")).to_be_focused()


def test_filters_survive_reload_and_the_back_button(alice: Page) -> None:
    alice.goto("/catalogue/")
    narrow = alice.get_by_role("navigation", name="Narrow by")
    narrow.get_by_text("Server", exact=True).click()
    narrow.get_by_role("link", name="code", exact=True).click()
    alice.get_by_role("link", name="code.search").click()
    expect(alice.get_by_role("heading", name="code.search")).to_be_visible()

    alice.go_back()
    alice.reload()

    expect(alice.get_by_role("link", name="Server: code take away")).to_be_visible()
    expect(alice.get_by_role("link", name="calculator.add")).to_have_count(0)


def test_the_exact_time_is_there_on_focus(alice: Page, office: Office) -> None:
    alice.goto(f"/calls/{office.pictured}/")
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

    alice.get_by_role("button", name="Publish version 1").focus()
    alice.keyboard.press("Enter")

    expect(alice.get_by_text("agents get it now")).to_be_visible()
