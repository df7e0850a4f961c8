"""A first visit: docs/en/tutorials/tour.md, by pressing what is in sight.

`python -m tests.browser.tour` walks the same way and takes the pictures.
"""

import os

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import tour
from tests.browser.scene import Office
from tests.browser.scene import office as furnished
from tests.browser.yesterday import yesterday
from tests.database import Databases

pytestmark = pytest.mark.long


@pytest.fixture
def office(chromium: Browser, transactional_db: None, databases: Databases) -> Office:
    with databases.superuser(os.environ) as link:
        return furnished(yesterday(link))


def test_a_first_visitor_finds_the_three_answers(alice: Page) -> None:
    alice.goto("/")

    tour.what_can_delete(alice)
    for tool in ("mailer.send_mail", "files.write_file"):
        expect(alice.get_by_role("link", name=tool)).to_be_visible()
    expect(alice.get_by_role("link", name="code.search")).to_have_count(0)

    tour.what_waits(alice)
    expect(alice.locator("[data-row]")).to_have_count(2)
    expect(alice.locator("[data-card]")).to_contain_text("scout, for bob, requests")

    tour.what_scout_did(alice)
    expect(alice.locator("main")).to_contain_text("6 calls of 4 tools")
    told = alice.get_by_role("region", name="Calls").get_by_role("listitem")
    for asked, allowed in [
        ("asked 2 times for code.search", "Allowed by the rule “Everyday work”."),
        ("asked once for weather.forecast", "Allowed by the rule “Everyday work”."),
        ("asked once for mailer.send_mail", "Approved by alice."),
        ("asked once for files.write_file", "Denied by alice."),
        ("asked once for files.write_file", "Blocked by the rule “No writing above the folder”."),
    ]:
        line = told.filter(has_text=asked).filter(has_text=allowed)
        expect(line).to_have_count(1)
    # That was today.
    expect(alice.get_by_text("calculator.add")).to_have_count(0)
