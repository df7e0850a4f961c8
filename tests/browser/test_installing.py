"""The console is installed as an application, on a phone or a computer.

PICTURES is a directory for a picture of the installed application's window.
"""

import json
import os
import struct
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from calls.record.states import State
from tests.browser.conftest import Opened, session_cookie
from tests.browser.scene import Office
from tests.browser.whole_chromium import Screen, whole_chromium
from tests.console import scenery
from tests.processes import Stack

pytestmark = pytest.mark.long

STANDALONE = "matchMedia('(display-mode: standalone)').matches"


def test_a_browser_may_install_it(opened: Opened) -> None:
    page = opened()
    page.goto("/sign-in/")

    found = page.context.new_cdp_session(page).send("Page.getAppManifest")

    assert found["errors"] == []
    assert urlsplit(found["url"]).path == "/static/app.webmanifest"
    manifest = json.loads(found["data"])
    assert urljoin(found["url"], manifest["start_url"]) == urljoin(page.url, "/")
    assert (
        page.request.get(found["url"])
        .headers["content-type"]
        .startswith("application/manifest+json")
    )
    for icon in manifest["icons"]:
        body = page.request.get(urljoin(found["url"], icon["src"])).body()
        assert "{}x{}".format(*struct.unpack(">II", body[16:24])) == icon["sizes"]
    touch = page.locator("link[rel=apple-touch-icon]").get_attribute("href") or ""
    assert page.request.get(urljoin(page.url, touch)).ok


def test_nothing_keeps_a_browser_from_installing_it(opened: Opened) -> None:
    """By the browser's own rules: name, start, display and icons, of a secure context."""
    page = opened()
    page.goto("/sign-in/")
    asked = page.context.new_cdp_session(page)

    found = asked.send("Page.getInstallabilityErrors")["installabilityErrors"]

    # A window of its own has a profile that keeps nothing, which is the test's and not the page's.
    assert {one["errorId"] for one in found} <= {"in-incognito"}
    manifest = json.loads(asked.send("Page.getAppManifest")["data"])
    assert manifest["name"]
    assert manifest["display"] in ("standalone", "fullscreen", "minimal-ui")
    start = urljoin(page.url, manifest["start_url"])
    assert urljoin(start, manifest["id"]) == urljoin(page.url, "/")
    sizes = {one["sizes"] for one in manifest["icons"] if one.get("purpose", "any") == "any"}
    assert {"192x192", "512x512"} <= sizes
    assert any(one.get("purpose") == "maskable" for one in manifest["icons"])


def test_installed_it_has_a_window_of_its_own(
    chromium: Browser, tmp_path: Path, office: Office, stack: Stack
) -> None:
    assert stack.web
    scenery.call(office.scout, office.send, scenery.MAIL, State.HELD)
    with whole_chromium(chromium, tmp_path, no_viewport=True) as (whole, screen):
        whole.add_cookies([session_cookie(office.alice, stack.web_url)])
        install(whole, stack, screen)


def install(whole: BrowserContext, stack: Stack, screen: Screen) -> None:
    page = whole.pages[0]
    page.goto(stack.web_url)
    assert not page.evaluate(STANDALONE)
    asked = whole.new_cdp_session(page)
    assert asked.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
    app = {"manifestId": urljoin(stack.web_url, "/")}

    asked.send("PWA.install", app)
    asked.send("PWA.changeAppUserSettings", {**app, "displayMode": "standalone"})
    with whole.expect_page() as opened:
        asked.send("PWA.launch", app)

    window = opened.value
    expect(window.get_by_role("heading", name="Queue")).to_be_visible()
    window.wait_for_function(STANDALONE)
    if directory := os.environ.get("PICTURES"):
        window.screenshot(path=f"{directory}/installed.png")
        # With its frame, which a page does not draw.
        screen.picture().save(f"{directory}/installed-window.png")
