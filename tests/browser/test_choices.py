"""Long lists of choices, which are searched instead of scrolled."""

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Agent
from accounts.roles import Role
from policies.models import Rule
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.console import scenery

CROWD = 1000


@pytest.fixture
def crowd(office: Office) -> None:
    names = (f"crowd-{n:04}" for n in range(CROWD))
    Agent.objects.bulk_create(Agent(name=name, owner=office.bob) for name in names)


def new_rule(page: Page) -> None:
    page.goto("/new/rule/?effect=deny")
    page.get_by_text("any agent, or only certain ones").press("Enter")


def test_one_of_a_thousand_agents_is_found_by_typing(opened: Opened, crowd: None) -> None:
    page = opened(scenery.person("ada", Role.ADMINISTRATOR))
    new_rule(page)
    search = page.get_by_role("searchbox", name="Search: Agents")
    agents = page.get_by_role("group", name="Agents").get_by_role("checkbox")

    search.press_sequentially("crowd 0777")
    expect(agents).to_have_count(1)
    expect(page.get_by_role("group", name="Agents").get_by_role("status")).to_have_text(
        f"1 of {Agent.objects.count()} shown"
    )
    # Enter sends no form that was not meant.
    search.press("Enter")
    search.press("ArrowDown")
    page.keyboard.press("Space")
    search.fill("crowd 0042")
    search.press("ArrowDown")

    # What is chosen stays in sight, whatever is typed.
    expect(agents).to_have_count(2)
    page.get_by_role("checkbox", name="crowd-0042").press("Space")
    page.get_by_label("Name", exact=True).fill("Two of them")
    page.locator("[name=effect]").select_option("deny")
    page.get_by_role("button", name="Save the rule").press("Enter")
    expect(page.get_by_text("is saved.")).to_be_visible()
    chosen = Rule.objects.get(name="Two of them").agents.values_list("name", flat=True)
    assert sorted(chosen) == ["crowd-0042", "crowd-0777"]


def test_what_is_chosen_comes_first(opened: Opened, crowd: None, office: Office) -> None:
    page = opened(scenery.person("ada", Role.ADMINISTRATOR))
    rule = Rule.objects.create(name="One", effect="deny", reason="No.", position=999)
    rule.agents.add(Agent.objects.get(name="crowd-0900"))

    page.goto(f"/policies/{rule.pk}/")

    first = page.get_by_role("group", name="Agents").get_by_role("checkbox").first
    expect(first).to_be_checked()


def test_without_a_script_it_is_a_list(opened: Opened, crowd: None) -> None:
    page = opened(scenery.person("ada", Role.ADMINISTRATOR), java_script_enabled=False)
    page.goto("/new/rule/")
    page.get_by_text("any agent, or only certain ones").click()

    expect(page.get_by_role("searchbox", name="Search: Agents")).to_have_count(0)
    page.get_by_role("checkbox", name="crowd-0777").check()


def test_a_short_list_has_no_search(opened: Opened, office: Office) -> None:
    page = opened(scenery.person("ada", Role.ADMINISTRATOR))
    new_rule(page)

    expect(page.get_by_role("checkbox", name="scout")).to_be_visible()
    expect(page.get_by_role("searchbox", name="Search: Agents")).to_have_count(0)
