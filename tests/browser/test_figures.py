"""Charts of one server, rule, agent and person, and the ways to them."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.roles import Role
from policies.models import Rule
from tests.browser.conftest import Opened
from tests.browser.every_page import approved
from tests.browser.scene import Office
from tests.console import scenery

pytestmark = pytest.mark.long

WAYS = [
    ("/servers/mailer/", "Usage", True),
    ("/policies/", "Usage", False),
    ("/agents/scout/", "Usage", True),
    ("/profile/", "How many you approved and denied, and the time from request to vote", True),
]


def test_charts_are_reached_and_narrowed_by_keyboard(alice: Page, office: Office) -> None:
    approved(office, office.alice)
    for page, name, has_calls in WAYS:
        alice.goto(page)
        alice.get_by_role("main").get_by_role("link", name=name).first.press("Enter")
        alice.wait_for_url(re.compile(r"/(usage|decisions)/$"))
        alice.get_by_role("link", name="30 d").press("Enter")
        expect(alice.get_by_role("link", name="30 d")).to_have_attribute("aria-current", "true")
        expect(alice).to_have_url(re.compile(r"/(usage|decisions)/\?range=30d$"))
        if has_calls:
            alice.get_by_role("link", name="Skip the chart").press("Enter")
            alice.get_by_text("As a table").press("Enter")
            expect(alice.locator("#step-figures table")).to_be_visible()


def test_the_workload_leads_to_charts_of_an_approver_and_a_rule(
    alice: Page, office: Office
) -> None:
    rule = Rule.objects.get(name="Mails are read first")
    approved(office, office.alice, rule_id=rule.pk, rule=rule.name)
    for within, name, there in (
        ("#people", "alice", "/decisions/"),
        ("#rules", rule.name, f"/policies/{rule.pk}/usage/"),
    ):
        alice.goto("/workload/")
        section = alice.get_by_role("main").locator("section", has=alice.locator(within))
        section.get_by_role("link", name=name).press("Enter")
        alice.wait_for_url(f"**{there}")


def test_a_rules_form_leads_to_its_charts(opened: Opened, office: Office) -> None:
    page = opened(scenery.person("ada", Role.ADMINISTRATOR))
    rule = Rule.objects.get(name="Mails are read first")
    page.goto(f"/policies/{rule.pk}/")
    page.get_by_role("main").get_by_role("link", name="Usage").press("Enter")

    page.wait_for_url(f"**/policies/{rule.pk}/usage/")


def test_an_agents_figures_lead_to_its_calls(alice: Page, office: Office) -> None:
    for link in ("#step-figures th a", ".stacked svg a", 'a[href="/calls/?agent=scout"]'):
        alice.goto("/agents/scout/usage/?range=30d")
        if link.startswith("#"):
            alice.get_by_text("As a table").click()
        alice.get_by_role("main").locator(link).first.press("Enter")
        alice.wait_for_url("**/calls/?*agent=scout*")


def test_a_toolsets_tools_are_downloaded_in_the_form_of_a_models_api(
    alice: Page, office: Office
) -> None:
    alice.goto("/toolsets/office/")
    with alice.expect_download() as download:
        alice.get_by_role("link", name="OpenAI").press("Enter")
    assert download.value.suggested_filename == "office.openai.json"
