"""The database hangs while a button is pressed: a real browser shows what is known of it."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import session_cookie
from tests.browser.scene import Office
from tests.faults.proxy import DatabaseWire
from tests.processes import Stack

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


@pytest.fixture
def database() -> Iterator[DatabaseWire]:
    with DatabaseWire(os.environ["DATABASE_URL"]) as wire:
        yield wire


@pytest.fixture
def alice(
    chromium: Browser, office: Office, own_stack: Stack, database: DatabaseWire
) -> Iterator[Page]:
    own_stack.env |= {"DATABASE_URL": database.url, "COUNTERSIGN_DATABASE_SILENT_S": "0.5"}
    assert own_stack.web
    context = chromium.new_context(base_url=own_stack.web_url)
    context.add_cookies([session_cookie(office.alice, own_stack.web_url)])
    yield context.new_page()
    context.close()


def test_a_vote_whose_commit_is_not_answered_may_be_recorded(
    alice: Page, office: Office, database: DatabaseWire
) -> None:
    alice.set_viewport_size({"width": 1280, "height": 1800})
    alice.goto("/queue/")
    database.once_said(b'INSERT INTO "approvals_vote"', b"COMMIT", then=database.hold)

    card = alice.locator(f"#card-{office.held}")
    card.get_by_role("button", name="Approve").click()

    note = alice.locator("#messages [role=alert]")
    expect(note).to_contain_text("recorded is not known")
    expect(note.get_by_role("link")).to_have_attribute("href", f"/calls/{office.held}/")

    database.let_go()
    note.get_by_role("link").press("Enter")
    alice.wait_for_url(f"**/calls/{office.held}/")
