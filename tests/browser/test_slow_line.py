"""The queue on a slow line, with nothing in the browser's cache, and again."""

import logging

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.slow_line import visit

BYTES_MAX, ROUND_TRIPS_MAX = 90_000, 4
logger = logging.getLogger(__name__)


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_the_cold_queue_is_small_and_soon_there(
    opened: Opened, office: Office, locale: str
) -> None:
    page = opened(office.alice, locale=locale)
    first = visit(page, "/queue/")

    expect(page.locator("[data-card]")).to_be_visible()
    told = [(one.bytes, one.address) for one in first.transfers]
    logger.info(
        "%s: %d bytes, %d round trips, painted after %.1f s, loaded after %.1f s",
        *(locale, first.bytes, first.round_trips, first.painted_s, first.loaded_s),
    )
    assert first.bytes <= BYTES_MAX, told
    assert first.round_trips <= ROUND_TRIPS_MAX, told
    ours = [one for one in first.transfers if "/static/" in one.address]
    kinds = {one.address.rpartition(".")[2] for one in ours}
    assert kinds >= {"css", "js", "woff2"}
    for one in ours:
        assert "immutable" in one.headers["cache-control"], one.address

    again = visit(page, "/queue/")
    asked_for = [one.address for one in again.transfers if not one.is_cached]
    assert [address for address in asked_for if "/static/" in address] == []
    assert again.bytes <= BYTES_MAX / 4
