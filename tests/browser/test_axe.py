"""axe-core finds nothing to complain of on any page, in either theme and width."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

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


def look(page: Page) -> list[str]:
    """What axe complains of on this page, whatever the width and the theme."""
    page.evaluate(f"() => {{ {AXE.read_text()} }}")
    found: dict[str, None] = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            every = {"type": "tag", "values": TAGS}
            only = every if theme == "light" else {"type": "rule", "values": COLOURS}
            said: list[Any] = page.evaluate(RUN, only)
            found |= dict.fromkeys(f"{width} {theme} {one}" for one in said)
    return list(found)


@pytest.mark.slow
def test_axe_finds_nothing_on_any_page(opened: Opened, office: Office) -> None:
    ada = everybody("ada")
    furnish(office, ada)
    pages = every_page(office, ada)
    page = opened(ada)
    wrong: dict[str, list[str]] = {}
    for address in [*pages, *further(office)]:
        page.goto(address)
        expect(page.locator(".htmx-request")).to_have_count(0)
        if said := look(page):
            wrong[address] = said
    assert wrong == {}


@pytest.mark.parametrize("address", ["/sign-in/", "/sign-in/?next=/queue/&ended=1"])
def test_axe_finds_nothing_where_one_signs_in(opened: Opened, office: Office, address: str) -> None:
    page = opened()
    page.goto(address)

    assert look(page) == []


@pytest.mark.parametrize("key", ["?", "Control+k"])
def test_axe_finds_nothing_in_what_opens_over_a_page(alice: Page, key: str) -> None:
    alice.goto("/calls/")
    alice.keyboard.press(key)
    alice.get_by_role("dialog").wait_for()

    assert look(alice) == []


def test_axe_finds_what_is_wrong(alice: Page) -> None:
    alice.goto("/calls/")
    alice.evaluate("document.querySelector('main').append(document.createElement('input'))")

    assert any("label" in said for said in look(alice))
