"""A limit from the first word to its end, with the keyboard alone, in a narrow window."""

from decimal import Decimal

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from accounts.roles import Role
from policies.models import Limit, LimitCounter
from tests.browser.conftest import Opened
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.console import scenery

pytestmark = pytest.mark.long

WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture
def ada(office: Office) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


def press(page: Page, role: str, name: str) -> None:
    found = page.locator("main").get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]
    found.first.focus()
    page.keyboard.press("Enter")


def press_more(page: Page, role: str, name: str) -> None:
    """In the sheet of what is seldom done, on a phone."""
    press(page, "button", "More")
    press(page, role, name)


def type_into(page: Page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(text)


def tick(page: Page, group: str, name: str) -> None:
    page.get_by_role("group", name=group).get_by_label(name, exact=True).focus()
    page.keyboard.press("Space")


def fill_all(page: Page) -> None:
    """What a cost has, and what is left out again since it belongs to another kind of limit."""
    of_kinds = {"Burst": "calls", "For minutes": "failures", "Argument with the cost": "cost"}
    for label, kind in of_kinds.items():
        expect(page.get_by_label(label, exact=True)).to_be_hidden()
        choose(page.get_by_label("What is counted"), kind)
        type_into(page, label, "5")
        page.keyboard.press("Backspace")
    type_into(page, "Cost of a call", "0.5")
    type_into(page, "Unit", "EUR")
    for name in ("person (the agent's owner)", "toolset", "server", "tool", "risk", "agent"):
        tick(page, "Counted for each", name)
        tick(page, "Counted for each", name)
    type_into(page, "Server", "mailer")
    type_into(page, "Tool", "send_mail")
    expect(page.locator("#covers")).to_contain_text("Covers 1 published tool today.")
    choose(page.get_by_label("Tool says"), "")
    for group in ("Approver", "Auditor", "Operator", "Viewer", "Administrator"):
        tick(page, "Groups of their owners", group)
        tick(page, "Groups of their owners", group)
    type_into(page, "Reason", "Each is printed.")
    choose(page.get_by_label("Mode"), "enforce")


def test_a_budget_is_made_changed_disabled_and_removed(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada, viewport={"width": 360, "height": 740})
    page.goto("/settings/")
    press(page, "link", "Limits")
    press(page, "link", "New limit")
    press(page, "link", "Cancel")
    press(page, "link", "New limit")
    expect(page.get_by_role("heading", name="New limit")).to_be_visible()
    assert not page.evaluate(WIDE)

    type_into(page, "Name", "Mails cost money")
    choose(page.get_by_label("What is counted"), "cost")
    type_into(page, "At most", "10")
    choose(page.get_by_label("Per", exact=True), "month")
    choose(page.get_by_label("Effect"), "deny")
    press(page, "button", "Save the limit")
    expect(page.get_by_text("Give either the cost of a call")).to_be_visible()
    fill_all(page)
    tick(page, "Agents", "scout")
    press(page, "button", "Save the limit")

    expect(page.get_by_text("“Mails cost money” is saved.")).to_be_visible()
    expect(page.locator(".lead")).to_contain_text("10 EUR per month · for each agent")
    assert not page.evaluate(WIDE)
    made = Limit.objects.get()
    assert (made.cost, made.tool, made.reason) == (Decimal("0.5"), "send_mail", "Each is printed.")
    press(page, "link", "Edit")
    press(page, "link", "Cancel")
    press(page, "link", "Edit")
    choose(page.get_by_label("What is counted"), "cost")
    choose(page.get_by_label("Per", exact=True), "month")
    choose(page.get_by_label("Effect"), "deny")
    fill_all(page)
    tick(page, "Agents", "scout")
    tick(page, "Agents", "scout")
    type_into(page, "Name", "Mails cost money")
    type_into(page, "At most", "12")
    press(page, "button", "Save the limit")
    expect(page.locator(".lead")).to_contain_text("12 EUR per month")

    press_more(page, "link", "Disable")
    press(page, "link", "Keep it on")
    press_more(page, "link", "Disable")
    press(page, "button", "Disable the limit")
    expect(page.get_by_text("it limits nothing")).to_be_visible()
    press_more(page, "button", "Enable")
    expect(page.get_by_text("“Mails cost money” is on.")).to_be_visible()

    page.get_by_role("navigation").get_by_role("link", name="Limits").first.focus()
    page.goto("/limits/")
    press(page, "link", "Mails cost money")
    press_more(page, "link", "Remove")
    press(page, "link", "Keep it")
    press_more(page, "link", "Remove")
    press(page, "button", "Remove the limit")
    expect(page.get_by_text("“Mails cost money” is removed.")).to_be_visible()
    assert not Limit.objects.exists()


def test_what_an_agent_used_leads_from_its_page_to_the_limit(
    opened: Opened, office: Office, ada: User
) -> None:
    made = scenery_limit()
    LimitCounter.objects.create(
        limit=made, key="agent:1", label="scout", agent_id=office.scout.pk, spent=3
    )
    page = opened(ada)
    page.goto("/agents/scout/")

    expect(page.get_by_text("3 of 3 used")).to_be_visible()
    press(page, "link", "Few at once")

    expect(page.get_by_role("heading", name="Few at once")).to_be_visible()
    expect(page.get_by_text("Reached")).to_be_visible()
    page.goto("/policies/explain/?tool=mailer.send_mail&agent=scout&arguments=")
    press(page, "link", "Few at once")
    expect(page.get_by_role("heading", name="Few at once")).to_be_visible()


def scenery_limit() -> Limit:
    return Limit.objects.create(
        name="Few at once", kind="concurrency", amount=3, effect="deny", per=["agent"]
    )
