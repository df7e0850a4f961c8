"""Nobody needs a mouse: on every page the Tab key reaches every control, each in sight."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opened
from tests.browser.every_page import every_page, everybody, furnish, further
from tests.browser.scene import Office

pytestmark = pytest.mark.long

UNFOLD = "for (const one of document.querySelectorAll('details:not([open])')) one.open = true"
# Of radio buttons with one name the keyboard reaches one, and arrows the others.
BEGIN = """() => {
  const isOneOfGroup = (e) => {
    const group = [...document.querySelectorAll(`[type=radio][name="${e.name}"]`)];
    return e === (group.find((one) => one.checked) ?? group[0]);
  };
  const all = document.querySelectorAll("a[href], button, input, select, textarea, summary");
  window.wanted = new Set([...all].filter((e) =>
    e.checkVisibility({visibilityProperty: true}) && !e.closest("[aria-hidden=true]")
    && !e.disabled && e.type !== "hidden" && (e.type !== "radio" || isOneOfGroup(e))));
  window.unseen = [];
  addEventListener("focusin", ({target}) => {
    wanted.delete(target);
    const {width, height, bottom, top} = target.getBoundingClientRect();
    if (!width || !height || bottom <= 0 || top >= innerHeight) unseen.push(target.outerHTML);
  });
  return wanted.size;
}"""
LEFT = "[...wanted].concat(unseen).map((e) => e.outerHTML?.slice(0, 160) ?? e.slice(0, 160))"


def not_reached(page: Page) -> list[str]:
    page.evaluate(UNFOLD)
    # Some are only read when they are opened.
    expect(page.locator(".htmx-request")).to_have_count(0)
    # Pieces of text that scroll take the focus too, and the parts of a date.
    others = page.locator("[tabindex='0']").count() + 8 * page.locator("[type*=time]").count()
    presses = page.evaluate(BEGIN) + others + 2
    page.keyboard.press("Home")
    for _ in range(presses):
        page.keyboard.press("Tab")
    left: list[str] = page.evaluate(LEFT)
    return left


def test_tab_reaches_every_control_of_every_page(opened: Opened, office: Office) -> None:
    ada = everybody("ada")
    furnish(office, ada)
    page = opened(ada)
    page.route_web_socket("**/live/**", lambda socket: None)
    wrong: dict[str, list[str]] = {}
    for address in [*every_page(office, ada), *further(office)]:
        page.goto(address)
        expect(page.locator(".htmx-request")).to_have_count(0)
        if left := not_reached(page):
            wrong[address] = left
    assert wrong == {}


def test_what_tab_does_not_reach_is_found(alice: Page) -> None:
    alice.goto("/calls/")
    alice.evaluate("document.querySelector('main a').tabIndex = -1")

    assert len(not_reached(alice)) == 1
