"""Every link of every page leads where it says, followed by mouse and by keyboard in turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from django.urls import resolve
from playwright.sync_api import Error, Locator, Page, Response, Route, expect

from tests.browser.conftest import PATIENCE_MS, Opened
from tests.browser.every_page import every_page, everybody, furnish, further
from tests.browser.scene import Office

pytestmark = pytest.mark.long

# Those of the frame stand on every page, and those of a card on the queue's two. One that opens
# a part of the page by script has a test of its own.
LINKS = """() => [...document.querySelectorAll("a[href]")].map((link, n) => ({
    // Whatever the page does meanwhile, this one is meant.
    n: link.dataset.place = n,
    part: link.closest("header.rail, dialog, .skip, #frozen, .breadcrumbs") ? "frame"
      : link.closest("[data-card]") ? "card" : location.pathname,
    href: link.origin === location.origin ? link.pathname + link.search : "",
    is_here: link.pathname + link.search === location.pathname + location.search,
    is_file: link.hasAttribute("download"),
    is_seen: link.checkVisibility({visibilityProperty: true})
      && !link.matches("[data-open], [data-row], [hx-get]"),
  }))"""
# What opens may ask for more: that it did is known a frame later.
OPEN = """() => {
  for (const closed of document.querySelectorAll("details:not([open])")) closed.open = true;
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


Kind = tuple[str, str, tuple[str, ...]]
# They lead a person who is signed in to the same page.
LEAD_ON = ("/", "/sign-in/")
# That many kinds there are, or pages no longer show them.
MANY = 150


class Link(NamedTuple):
    place: int
    # Which link it is, whatever it is about.
    key: Kind
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


def test_every_link_leads_where_it_says(opened: Opened, office: Office) -> None:
    ada = everybody("ada")
    furnish(office, ada)
    page = opened(ada, accept_downloads=True)
    page.set_default_timeout(PATIENCE_MS)
    # Leaving a page while it still connects is what browsers complain of.
    page.route_web_socket("**/live/**", lambda socket: None)
    pressed: set[Kind] = set()
    astray: list[str] = []
    for address in [*every_page(office, ada), *further(office)]:
        arrive(page, address)
        new = {link.key: link for link in links(page) if link.key not in pressed}
        pressed |= set(new)
        for number, link in enumerate(new.values()):
            if wrong := follow(page, link, by_keyboard=number % 2 == 0):
                astray.append(f"{address}: {link}: {wrong}")
    assert astray == []
    assert len(pressed) > MANY


def arrive(page: Page, address: str) -> None:
    page.goto(address)
    page.evaluate(OPEN)
    expect(page.locator(".htmx-request")).to_have_count(0)


def follow(page: Page, link: Link, *, by_keyboard: bool) -> str:
    """What is wrong with it, if anything. The page stays, and what it asks for is fetched."""
    here = page.locator(f'a[data-place="{link.place}"]')
    try:
        if link.is_file:
            with page.expect_download() as download:
                press(here, by_keyboard)
            # Until it has ended, Chromium may give up the next page for it.
            return download.value.failure() or ""
        with staying(page), page.expect_response(lambda it: asked_for(it) == link.href):
            press(here, by_keyboard)
    except Error as error:
        return str(error)
    return missing(page, link.href)


def asked_for(response: Response) -> str:
    """Where a navigation was to lead; the answer to a download before it may come late."""
    there = urlsplit(response.url)
    address = there.path + (f"?{there.query}" if there.query else "")
    return address if response.request.is_navigation_request() else ""


@contextmanager
def staying(page: Page) -> Iterator[None]:
    """To what a link asks for, the answer is "no content": a browser stays where it is."""

    def answer(route: Route) -> None:
        if route.request.is_navigation_request():
            route.fulfill(status=204)
        else:
            route.continue_()

    page.route("**/*", answer)
    try:
        yield
    finally:
        page.unroute("**/*", answer)


def missing(page: Page, href: str) -> str:
    response = page.request.get(href)
    meant = page.request.get("/").url if href in LEAD_ON else href
    there = urlsplit(response.url).path == urlsplit(meant).path
    good = response.ok and there and "<h1" in response.text()
    return "" if good else f"{response.status} at {response.url}"


def press(link: Locator, by_keyboard: bool) -> None:
    if by_keyboard:
        link.press("Enter")
    else:
        link.click()
