"""Every page, in either theme and width: axe finds nothing, and all can be read and reached."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import reading
from tests.browser.conftest import Opened
from tests.browser.every_page import every_page, everybody, furnish, further
from tests.browser.scene import Office

AXE = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# What depends on colours; everything else is the same in both themes.
COLOURS = ["color-contrast", "link-in-text-block"]
WIDTHS = (1280, 360)
RUN = """async (only) => {
  for (const closed of document.querySelectorAll("details:not([open])")) closed.open = true;
  const found = await axe.run(document, {
    runOnly: only, resultTypes: ["violations"], preload: false, elementRef: false,
  });
  return found.violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 160)} (${node.failureSummary})`));
}"""


# All at once would take longer than a test may.
PARTS = 6


def look(page: Page) -> list[str]:
    """What is wrong with this page in any width and theme, by axe and by our own measure."""
    page.evaluate(f"() => {{ {AXE.read_text()} }}")
    found: dict[str, None] = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            every = {"type": "tag", "values": TAGS}
            only = every if theme == "light" else {"type": "rule", "values": COLOURS}
            said: list[Any] = [*page.evaluate(RUN, only), *reading.complaints(page)]
            found |= dict.fromkeys(f"{width} {theme} {one}" for one in said)
    return list(found)


@pytest.mark.long
@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_can_be_read_and_used(
    opened: Opened, office: Office, part: int, locale: str
) -> None:
    ada = everybody("ada")
    furnish(office, ada)
    pages = every_page(office, ada)
    page = opened(ada, locale=locale)
    wrong: dict[str, list[str]] = {}
    for address in [*pages, *further(office)][part::PARTS]:
        page.goto(address)
        expect(page.locator(".htmx-request")).to_have_count(0)
        if said := look(page):
            wrong[address] = said
    assert wrong == {}


@pytest.mark.parametrize("address", ["/sign-in/", "/sign-in/?next=/queue/&ended=1", "/nowhere/"])
@pytest.mark.smoke
def test_a_strangers_pages_can_be_read_and_used(
    opened: Opened, office: Office, address: str
) -> None:
    # A page that is not there is the browser's complaint, and the one that is looked at.
    said = ("/nowhere/: 404", "status of 404") if address == "/nowhere/" else ()
    page = opened(will_complain_of=said)
    page.goto(address)

    assert look(page) == []


@pytest.mark.parametrize("key", ["?", "Control+k"])
def test_what_opens_over_a_page_can_be_read_and_used(alice: Page, key: str) -> None:
    alice.goto("/calls/")
    alice.keyboard.press(key)
    alice.get_by_role("dialog").wait_for()

    assert look(alice) == []


WRONG = {
    "label": "main.append(document.createElement('input'))",
    "nameless": "main.append(document.createElement('input'))",
    "contrast": "main.querySelector('h1').style.color = getComputedStyle(main).backgroundColor",
    "small target": "main.querySelector('button').style.cssText = 'height: 9px; min-height: 0'",
    "the same id twice": "main.append(Object.assign(document.createElement('p'), {id: main.id}))",
    "a column of letters": "main.querySelector('.lead').style.cssText = 'max-width: 1ch; "
    "flex: none; overflow-wrap: anywhere'",
    "a broken word": "main.querySelector('.lead').style.cssText = 'max-width: 2.5ch; flex: none; "
    "overflow-wrap: anywhere'",
    "a loose comma": "main.querySelector('.lead').textContent = 'Created by ada , now'",
    "squeezed": "main.querySelector('button').style.cssText = 'width: 26px; padding: 0; "
    "white-space: nowrap'",
    "cut off": "main.querySelector('.lead').style.cssText = 'height: 8px; overflow: hidden'",
    "scrolls sideways": "main.querySelector('h1').style.minWidth = '2000px'",
    "2 h1": "main.append(main.querySelector('h1').cloneNode(true))",
}


@pytest.mark.long
def test_what_is_wrong_is_found(alice: Page) -> None:
    for what, spoil in WRONG.items():
        alice.goto("/calls/")
        alice.evaluate(f"() => {{ const main = document.querySelector('main'); {spoil} }}")

        assert any(what in said for said in look(alice)), what
