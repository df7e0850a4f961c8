"""Every link of every page leads where it says, followed by mouse and by keyboard in turn."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from django.urls import resolve
from playwright.sync_api import Error, Locator, Page, expect

from tests.browser.conftest import Opened
from tests.browser.every_page import every_page, everybody, furnish, further
from tests.browser.scene import Office

# Those of the frame stand on every page, and those of a card on the queue's two. One that opens
# a part of the page by script has a test of its own.
LINKS = """() => {
  for (const closed of document.querySelectorAll("details:not([open])")) closed.open = true;
  return [...document.querySelectorAll("a[href]")].map((link, n) => ({
    n,
    part: link.closest("header.rail, dialog, .skip, #frozen, .breadcrumbs") ? "frame"
      : link.closest("[data-card]") ? "card" : location.pathname,
    href: link.origin === location.origin ? link.pathname + link.search : "",
    is_here: link.pathname + link.search === location.pathname + location.search,
    is_file: link.hasAttribute("download"),
    is_seen: link.checkVisibility({visibilityProperty: true}) && !link.dataset.open,
  }));
}"""


class Link(NamedTuple):
    place: int
    # Which link it is, whatever it is about.
    key: tuple[str, str, tuple[str, ...]]
    href: str
    is_file: bool


def links(page: Page) -> Iterator[Link]:
    found: list[dict[str, Any]] = page.evaluate(LINKS)
    for one in found:
        if one["href"] and one["is_seen"] and not one["is_here"]:
            there = urlsplit(one["href"])
            part = resolve(one["part"]).view_name if one["part"][0] == "/" else one["part"]
            key = (part, resolve(there.path).view_name, tuple(sorted(parse_qs(there.query))))
            yield Link(one["n"], key, one["href"], one["is_file"])


@pytest.mark.slow
def test_every_link_leads_where_it_says(opened: Opened, office: Office) -> None:
    ada = everybody("ada")
    furnish(office, ada)
    page = opened(ada, accept_downloads=True)
    page.set_default_timeout(5_000)
    # Leaving a page while it still connects is what browsers complain of.
    page.route_web_socket("**/live/**", lambda socket: None)
    followed: set[tuple[str, str, tuple[str, ...]]] = set()
    astray: list[str] = []
    for address in [*every_page(office, ada), *further(office)]:
        arrive(page, address)
        for link in list(links(page)):
            if link.key not in followed:
                followed.add(link.key)
                try:
                    follow(page, link, by_keyboard=len(followed) % 2 == 0)
                except (Error, AssertionError):
                    astray.append(f"{address}: {link} led to {page.url}")
                arrive(page, address)
    assert astray == []


def arrive(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".htmx-request")).to_have_count(0)
    page.evaluate(LINKS)


def follow(page: Page, link: Link, *, by_keyboard: bool) -> None:
    here = page.locator("a[href]").nth(link.place)
    if link.is_file:
        with page.expect_download():
            press(here, by_keyboard)
        return
    press(here, by_keyboard)
    page.wait_for_url(lambda url: _is(url, link.href), wait_until="domcontentloaded")
    expect(page.locator("h1").first).to_be_attached()


def press(link: Locator, by_keyboard: bool) -> None:
    if by_keyboard:
        link.press("Enter")
    else:
        link.click()


def _is(url: str, href: str) -> bool:
    there = urlsplit(url)
    arrived = there.path + (f"?{there.query}" if there.query else "")
    return arrived == href or (href == "/" and there.path == "/catalogue/")
