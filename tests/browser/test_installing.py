"""The console is installed as an application, on a phone or a computer."""

import json
import struct
from urllib.parse import urljoin, urlsplit

import pytest

from tests.browser.conftest import Opened

pytestmark = pytest.mark.long


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
