"""Selecting alike calls in the queue and approving them in one step."""

from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from calls.models import Call
from calls.record.states import State
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.console import scenery

PHONE = {"width": 360, "height": 780}


@pytest.fixture
def reminders(office: Office) -> list[UUID]:
    return [
        scenery.call(
            office.scout,
            office.send,
            {"to": [f"{name}@example.org"], "subject": "Reminder", "body": f"Dear {name},\n" * 12},
            State.HELD,
        )
        for name in ("ana", "ben", "cem")
    ]


def states(calls: list[UUID]) -> list[str]:
    return [Call.objects.get(pk=one).state for one in calls]


def down(page: Page, lines: int) -> None:
    for _line in range(lines):
        page.keyboard.press("j")
        row = page.locator("[data-row]:focus").get_attribute("data-row")
        expect(page.locator(f"#card-{row}")).to_be_visible()


def test_by_keyboard_lines_are_selected_and_approved_together(
    alice: Page, reminders: list[UUID]
) -> None:
    alice.goto("/queue/")
    button = alice.get_by_role("button", name="Approve alike …")
    expect(button).to_be_hidden()
    down(alice, 3)
    expect(alice.locator(f"[data-row='{reminders[0]}']")).to_be_focused()

    alice.keyboard.press("x")
    expect(alice.get_by_text("1 selected: select another")).to_be_visible()
    expect(button).to_be_disabled()
    down(alice, 2)
    alice.keyboard.press("Shift+X")
    expect(alice.get_by_text("3 selected")).to_be_visible()
    alice.keyboard.press("x")
    expect(alice.get_by_text("2 selected")).to_be_visible()
    alice.keyboard.press("x")
    button.press("Enter")

    expect(
        alice.get_by_role("heading", name="Approve 3 calls of mailer.send_mail?")
    ).to_be_visible()
    approve = alice.get_by_role("button", name="Approve 3 calls")
    # Before the page's script runs, the press would count, as it does without script.
    expect(approve).to_have_attribute("aria-disabled", "true")
    approve.press("Enter")
    # What was not in view yet comes into view, until everything was.
    for place in range(3):
        alice.locator(".differing .end").nth(place).scroll_into_view_if_needed()
    alice.locator(".arguments .end").last.scroll_into_view_if_needed()
    expect(approve).not_to_have_attribute("aria-disabled", "true")
    alice.get_by_label("Comment to the agent").focus()
    alice.keyboard.type("Go on.")
    alice.keyboard.press("Tab")
    expect(approve).to_be_focused()
    alice.keyboard.press("Enter")

    expect(alice.get_by_text("You approved 3 calls. They are sent now.")).to_be_visible()
    assert states(reminders) == [State.QUEUED] * 3


@pytest.mark.parametrize("script", [True, False])
def test_on_a_phone_with_and_without_script(
    opened: Opened, office: Office, reminders: list[UUID], script: bool
) -> None:
    page = opened(office.alice, java_script_enabled=script, viewport=PHONE)
    page.goto("/queue/")
    for call_id in reminders:
        page.locator(f"#row-{call_id} .pick").click()
    page.get_by_role("button", name="Approve alike …").click()
    for name in ("ana", "ben", "cem"):
        expect(page.get_by_text(f"{name}@example.org").first).to_be_visible()
    if script:
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if script:
        for place in range(3):
            page.locator(".differing .end").nth(place).scroll_into_view_if_needed()
        page.locator(".arguments .end").last.scroll_into_view_if_needed()

    page.get_by_role("button", name="Approve 3 calls").click()

    expect(page.get_by_text("You approved 3 calls. They are sent now.")).to_be_visible()
    assert states(reminders) == [State.QUEUED] * 3


def test_lines_that_are_not_alike_are_compared_and_not_approved(
    alice: Page, office: Office, reminders: list[UUID]
) -> None:
    alice.goto("/queue/")
    for box in alice.locator("[data-pick]").all():
        box.check()
    alice.get_by_role("button", name="Approve alike …").click()

    expect(alice.get_by_role("heading", name="These calls are not alike")).to_be_visible()
    alice.get_by_role("link", name="Back to the queue").click()
    assert states(reminders) == [State.HELD] * 3
