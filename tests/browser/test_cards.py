"""What a card says while a person reads it: that calls are stopped, whose word is missing."""

import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.models import User
from accounts.roles import Role
from approvals import freezes
from approvals.models import Approval
from calls.models import Call
from calls.record.states import State
from tests.browser.conftest import Opened, rung
from tests.browser.scene import Office
from tests.console import scenery

STOPPED = "Suspended. Calls of this agent are frozen since"


@pytest.fixture
def ada(office: Office) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


def card(page: Page, office: Office) -> Locator:
    return page.locator(f"#card-{office.held}")


def approve(page: Page, office: Office) -> Locator:
    return card(page, office).get_by_role("button", name="Approve")


def live(page: Page) -> None:
    expect(page.locator("[data-connection]")).to_have_text("Live")


@pytest.mark.parametrize("width", [360, 1280])
def test_an_emergency_stop_shows_on_the_card_and_what_was_typed_stays(
    opened: Opened, office: Office, ada: User, width: int
) -> None:
    page = opened(office.alice, viewport={"width": width, "height": 2000})
    page.goto(f"/queue/{office.held}/")
    live(page)
    expect(approve(page, office)).not_to_have_attribute("aria-disabled", "true")
    page.get_by_label("Reason").fill("half a thou")

    stop = freezes.begin(by=office.alice, reason="It asks too often.", agent=office.scout)
    rung("queue")

    expect(card(page, office)).to_contain_text(STOPPED)
    expect(card(page, office)).to_contain_text("It asks too often.")
    expect(card(page, office)).to_contain_text("to decide once the emergency stop has ended")
    expect(card(page, office).get_by_role("timer")).to_have_count(0)
    expect(approve(page, office)).to_be_disabled()
    expect(page.get_by_label("Reason")).to_have_value("half a thou")

    freezes.end(stop, by=ada, why="It was told not to.")
    rung("queue")

    expect(approve(page, office)).to_be_enabled()
    expect(card(page, office).get_by_role("timer")).to_have_count(1)
    approve(page, office).click()
    expect(card(page, office)).to_contain_text("Approved by alice")


def test_during_a_stop_the_keyboard_leads_to_why_and_one_may_deny(
    alice: Page, office: Office
) -> None:
    freezes.begin(by=office.alice, reason="It asks too often.", agent=office.scout)
    alice.goto("/queue/")
    alice.keyboard.press("j")

    alice.keyboard.press("a")
    expect(card(alice, office).locator("[data-suspended]")).to_be_focused()
    alice.keyboard.press("Enter")
    alice.keyboard.press("r")
    alice.keyboard.press("Space")
    alice.keyboard.press("Enter")

    expect(card(alice, office)).to_contain_text("Denied by alice")


def test_without_javascript_a_stopped_call_cannot_be_approved(
    opened: Opened, office: Office
) -> None:
    freezes.begin(by=office.alice, reason="It asks too often.", agent=office.scout)
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/queue/")

    expect(card(page, office)).to_contain_text(STOPPED)
    expect(approve(page, office)).to_be_disabled()
    assert Call.objects.get(pk=office.held).state == State.HELD
    assert Approval.objects.get(pk=office.held).state == Approval.State.WAITING
