"""Saved cases by keyboard: kept from a try, changed, run, scheduled and deleted."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.roles import Role
from audit.models import Entry
from gateway.cases.services import add_case
from gateway.models import CaseRun, CaseSchedule, SavedCase
from registry.models import Tool
from tests.browser.conftest import Opened
from tests.browser.hands import choose, type_time
from tests.browser.scene import Office
from tests.browser.test_trying import odd as odd
from tests.console import scenery

pytestmark = pytest.mark.long


@pytest.fixture
def case(office: Office, odd: Tool) -> SavedCase:
    return add_case(odd, b'{"loud":true}', {"loud": True}, schema={}, by=office.alice)


def press(page: Page | Locator, name: str, kind: str = "button") -> None:
    page.get_by_role(kind, name=name, exact=True).press("Enter")  # type: ignore[arg-type]


def test_a_try_is_kept_as_a_case_and_run(alice: Page, odd: Tool) -> None:
    alice.goto(f"/tools/{odd.exposed_name}/try/")
    type_time(alice.get_by_label(re.compile("^day")), "2026-11-21")
    press(alice, "Save as a case")
    alice.get_by_label("Name", exact=True).fill("A day")
    choose(alice.get_by_label("It ends with"), "success")
    alice.get_by_label("The result contains the text").fill("sunny")
    alice.get_by_label("Values in the result").fill("$.n = 1")
    alice.get_by_label("It takes at most (ms)").fill("500")
    press(alice, "Save and run")

    expect(alice.locator("#runs")).to_contain_text("Pending approval")
    saved = SavedCase.objects.get()
    assert (saved.name, saved.contains, saved.values) == ("A day", "sunny", "$.n = 1")
    assert bytes(saved.arguments) == b'{"day":"2026-11-21"}'
    press(alice, "The whole call", "link")
    alice.wait_for_url("**/calls/*/")


def test_a_case_is_changed_and_deleted(alice: Page, case: SavedCase) -> None:
    address = f"/tools/{case.tool.exposed_name}/cases/{case.pk}/"
    alice.goto(address)
    alice.get_by_label("Values in the result").fill("n = 1")
    press(alice, "Save the case")
    expect(alice.locator(".error")).to_contain_text("n = 1")
    alice.get_by_label("Values in the result").fill("$.n = 1")
    words = alice.get_by_role("group", name=re.compile("^words"))
    words.get_by_role("button", name="Add an item to words").press("Enter")
    words.get_by_role("textbox").fill("one")
    press(alice, "Save the case")
    expect(alice.locator("main")).to_contain_text("“Case 1” is saved.")
    case.refresh_from_db()
    assert bytes(case.arguments) == b'{"words":["one"],"loud":true}'

    press(alice, "Delete", "link")
    press(alice, "Keep it", "link")
    alice.wait_for_url(f"**{address}")
    press(alice, "Delete", "link")
    press(alice, "Delete the case")
    expect(alice.locator("main")).to_contain_text("None yet. Try the tool and save")
    assert not SavedCase.objects.exists()


def test_cases_are_run_from_lists(alice: Page, case: SavedCase) -> None:
    alice.goto(f"/tools/{case.tool.exposed_name}/try/")
    press(alice, "Run all")
    expect(alice.locator("[aria-labelledby=cases] .state")).to_contain_text("Pending approval")
    press(alice, "Case 1", "link")
    expect(alice.locator("#runs")).to_contain_text("Pending approval")

    alice.goto("/servers/oddities/")
    section = alice.locator("[aria-labelledby=cases]")
    expect(section.locator(".state")).to_contain_text("Pending approval")
    press(section, "Run Case 1")
    alice.wait_for_url("**/cases/*/#runs")
    expect(alice.locator("#runs li")).to_have_count(2)

    CaseRun.objects.update(state="failed", is_scheduled=True)
    alice.goto("/overview/")
    press(alice, "1 saved case failed", "link")
    expect(alice.locator("#case-list li")).to_have_count(1)
    press(alice.locator("main"), "All", "link")
    press(alice, "Case 1", "link")
    alice.wait_for_url("**/tools/*/cases/*/")


def test_a_case_runs_on_a_schedule(alice: Page, case: SavedCase) -> None:
    alice.goto(f"/tools/{case.tool.exposed_name}/cases/{case.pk}/")
    choose(alice.get_by_label("Runs by itself"), "day")
    choose(alice.get_by_label("As the agent"), "shelf")
    press(alice, "Set the schedule")

    section = alice.locator("#scheduling")
    expect(section).to_contain_text("Daily, as the agent shelf of alice.")
    choose(alice.get_by_label("Runs by itself"), "")
    press(alice, "Set the schedule")
    expect(section).not_to_contain_text("Daily, as")
    assert not CaseSchedule.objects.exists()


def test_what_is_not_read_only_is_confirmed(alice: Page, office: Office, odd: Tool) -> None:
    """For all cases of a server."""
    send = scenery.offered(office.scout, office.send)
    add_case(send, b"{}", {}, schema={}, by=office.alice)
    alice.goto("/servers/mailer/")
    press(alice, "Run and schedule them", "link")
    press(alice, "Run all")
    expect(alice.locator("main")).to_contain_text("1 case was started.")
    choose(alice.get_by_label("Runs by itself"), "week")
    press(alice, "Set the schedule")
    section = alice.locator("#scheduling")
    expect(section).to_contain_text("Left out")

    alice.get_by_label("Run tools that are not read-only").press("Space")
    press(alice, "Set the schedule")
    expect(section).not_to_contain_text("Left out")
    assert CaseSchedule.objects.get().confirmed[str(send.pk)] == "destroys"
    assert Entry.objects.filter(action="case_schedule.set").count() == 2


def test_an_agent_for_trying_is_one_press_away(opened: Opened, office: Office) -> None:
    page = opened(scenery.person("eve", Role.OPERATOR))
    page.goto(f"/tools/{office.send.exposed_name}/try/")
    press(page, "Create an agent for trying")

    expect(page.locator("#trying")).to_contain_text("As your agent eve-try")
