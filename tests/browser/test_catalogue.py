"""Finding a tool, reading its pages, and trying it, as people do."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Agent
from accounts.roles import Role
from calls.models import Call
from registry import services
from registry.models import Server, Toolset
from registry.views import facets
from tests.browser.conftest import Opened
from tests.browser.hands import choose
from tests.browser.scene import SEARCH, Office
from tests.console import scenery
from tests.publishing import publish_as_read


@pytest.fixture
def desk(office: Office) -> Agent:
    """An agent of alice's own, which may use the office's tools."""
    agent = Agent.objects.create(name="desk", owner=office.alice)
    services.assign(Toolset.objects.get(slug="office"), agent, by=office.alice)
    return agent


def names(page: Page) -> list[str]:
    return page.locator("#found .rows .title").all_inner_texts()


@pytest.mark.smoke
def test_typing_finds_and_the_address_keeps_everything(alice: Page) -> None:
    alice.goto("/catalogue/")
    everything = names(alice)

    alice.get_by_role("searchbox", name="Search").press_sequentially("subjct")
    expect(alice.get_by_text("Nearly the same")).to_be_visible()
    alice.get_by_role("searchbox", name="Search").fill("mail")
    expect(alice.locator("#found .rows .title")).to_have_text(["mailer.send_mail"])
    expect(alice).to_have_url(re.compile(r"q=mail"))

    alice.reload()
    assert names(alice) == ["mailer.send_mail"]
    alice.get_by_role("link", name="Clear all").click()
    expect(alice.locator("#found .rows .title")).to_have_count(len(everything))


def test_tools_are_grouped_by_server(alice: Page) -> None:
    alice.goto("/catalogue/?risk=destroys")
    everything = names(alice)

    alice.get_by_role("link", name="By server").press("Enter")
    expect(alice).to_have_url(re.compile(r"risk=destroys.*group=server"))
    expect(alice.get_by_role("heading", name="mailer", exact=False)).to_be_visible()
    assert sorted(names(alice)) == sorted(everything)
    alice.get_by_role("link", name="All tools").click()
    expect(alice.get_by_role("heading", name="mailer")).to_have_count(0)

    alice.get_by_role("navigation", name="Main").get_by_role("link", name="Servers").press("Enter")
    expect(alice.get_by_role("heading", name="Servers", level=1)).to_be_visible()
    current = alice.get_by_role("navigation", name="Main").locator("[aria-current=page]")
    expect(current).to_have_text("Servers")


def test_facets_narrow_and_the_back_button_widens(alice: Page) -> None:
    alice.goto("/catalogue/")
    everything = names(alice)

    narrow = alice.get_by_role("navigation", name="Narrow by")
    narrow.get_by_role("link", name="office", exact=True).press("Enter")
    expect(alice).to_have_url(re.compile(r"toolset=office"))
    alice.get_by_role("link", name="Toolset office Remove").press("Enter")
    expect(alice).to_have_url(re.compile(r"/catalogue/\?$"))
    alice.goto("/catalogue/")

    alice.get_by_role("link", name="Destructive", exact=True).press("Enter")
    expect(alice).to_have_url(re.compile(r"risk=destroys"))
    alice.get_by_role("link", name="mailer", exact=True).click()
    expect(alice.locator("#found .rows .title")).to_have_text(["mailer.send_mail"])
    alice.get_by_role("link", name="Server mailer Remove").click()
    expect(alice).to_have_url(re.compile(r"\?risk=destroys$"))

    for _step in range(3):
        alice.go_back()
    expect(alice).to_have_url(re.compile(r"/catalogue/$"))
    assert names(alice) == everything


def test_a_search_works_without_javascript(opened: Opened, office: Office) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/catalogue/")

    page.get_by_role("searchbox", name="Search").fill("mail")
    page.get_by_role("button", name="Search", exact=True).click()

    assert names(page) == ["mailer.send_mail"]


def test_on_a_telephone_one_searches_by_the_button_and_unfolds_what_narrows(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice, viewport={"width": 360, "height": 780})
    page.goto("/catalogue/")
    page.get_by_role("searchbox", name="Search").fill("mail")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#found .rows .title")).to_have_text(["mailer.send_mail"])
    page.get_by_text("Narrow by").click()
    facet = page.get_by_role("navigation", name="Narrow by").locator(".facet > summary").first
    facet.press("Enter")
    facet.click()
    page.get_by_role("link", name="Destructive", exact=True).click()
    expect(page).to_have_url(re.compile("risk=destroys"))


def test_what_one_unfolded_stays_so_when_the_next_letter_is_answered(
    opened: Opened, office: Office
) -> None:
    page = opened(office.alice, viewport={"width": 360, "height": 780})
    page.goto("/catalogue/")
    page.get_by_text("Narrow by").click()
    facet = page.get_by_role("navigation", name="Narrow by").locator(".facet > summary").first
    expect(facet).to_be_visible()
    page.get_by_role("searchbox", name="Search").fill("mail")
    expect(page.locator("#found .rows .title")).to_have_text(["mailer.send_mail"])
    expect(facet).to_be_visible()


def test_versions_are_compared(alice: Page, office: Office) -> None:
    scenery.see(office.search.server, {**SEARCH, "description": "Finds other things."})
    alice.goto(f"/tools/{office.search.exposed_name}/")

    alice.get_by_role("link", name="Versions").click()
    expect(alice.get_by_role("heading", name="From version 1 to 2")).to_be_visible()
    expect(alice.locator("ins")).to_have_text("Now: Finds other things.")
    alice.get_by_text("The lines of JSON that differ").press("Enter")
    expect(alice.locator("pre.diff")).to_contain_text("Finds other things.")
    choose(alice.get_by_label("From", exact=True), "2")
    choose(alice.get_by_label("To", exact=True), "1")
    alice.get_by_role("button", name="Compare").click()
    expect(alice.get_by_role("heading", name="From version 2 to 1")).to_be_visible()
    alice.get_by_role("link", name="Version 1", exact=True).press("Enter")
    alice.wait_for_url("**/versions/?to=1")


def test_a_definition_is_rolled_back(opened: Opened, office: Office) -> None:
    olga = scenery.person("olga", Role.OPERATOR)
    server = office.search.server
    scenery.see(server, {**SEARCH, "description": "Finds words."})
    publish_as_read(server, by=olga)
    page = opened(olga)
    for press in ("Space", "Enter"):
        page.goto("/tools/code.search/versions/")
        page.get_by_role("link", name="Roll back to version 1").press("Enter")
        if press == "Space":
            page.get_by_role("link", name="Keep it").press("Enter")
            page.wait_for_url("**/versions/")
    page.get_by_role("button", name="Roll back").press("Enter")

    expect(page.get_by_text("Version 1 is the published one.")).to_be_visible()


def test_advice_to_the_author_of_a_definition_is_unfolded(alice: Page, office: Office) -> None:
    alice.goto(f"/tools/{office.search.exposed_name}/")

    alice.get_by_text("of advice to its author").first.press("Enter")

    expect(alice.locator("details[open] li", has_text="says")).not_to_have_count(0)


def test_policy_and_usage_are_a_tab_away(alice: Page, office: Office) -> None:
    alice.goto(f"/tools/{office.search.exposed_name}/")

    alice.get_by_role("link", name="Policy", exact=True).click()
    expect(alice.get_by_role("heading", name="What would happen?")).to_be_visible()
    alice.get_by_role("link", name="Usage").click()
    expect(alice.get_by_role("img", name=re.compile("Calls a day"))).to_be_visible()
    alice.get_by_text("As a table").click()
    expect(alice.get_by_role("cell", name="100%")).to_be_visible()


@pytest.mark.smoke
def test_a_tool_is_tried_by_keyboard(alice: Page, office: Office, desk: Agent) -> None:
    alice.goto(f"/tools/{office.search.exposed_name}/try/")

    pattern = alice.get_by_label(re.compile("^pattern"))
    pattern.fill("def")
    alice.get_by_role("button", name="What would happen?").press("Enter")
    expect(alice.get_by_text("It will be sent at once.")).to_be_visible()
    expect(pattern).to_have_value("def")
    alice.get_by_label(re.compile("^pattern")).press("Control+Enter")

    # Nobody listens at the server's address.
    expect(alice.locator("#call-state")).to_contain_text("Failed")
    call = Call.objects.get(agent=desk)
    assert bytes(call.arguments) == b'{"pattern":"def"}'
    assert call.origin == "console"
    expect(alice.locator(".rows [aria-current]")).to_have_count(1)


def test_fields_and_json_are_two_views_of_the_same(
    alice: Page, office: Office, desk: Agent
) -> None:
    alice.goto(f"/tools/{office.search.exposed_name}/try/")

    alice.get_by_label(re.compile("^pattern")).fill("x")
    alice.get_by_role("button", name="Edit as JSON").click()
    raw = alice.get_by_label("Arguments as JSON")
    expect(raw).to_have_value(re.compile('"pattern": "x"'))
    raw.fill('{"pattern": "y", "limit": 7}')
    alice.get_by_role("button", name="Back to the fields").click()

    expect(alice.get_by_label(re.compile("^pattern"))).to_have_value("y")
    expect(alice.get_by_label(re.compile("^limit"))).to_have_value("7")


def test_what_does_not_fit_is_said_at_its_field(alice: Page, office: Office, desk: Agent) -> None:
    alice.goto(f"/tools/{office.search.exposed_name}/try/")

    alice.get_by_label(re.compile("^limit")).fill("1000")
    alice.get_by_role("button", name="Call the tool").click()

    expect(alice.get_by_label(re.compile("^limit"))).to_have_accessible_description(
        re.compile("must be at most 200")
    )
    expect(alice.get_by_label(re.compile("^pattern"))).to_have_accessible_description(
        re.compile("is required")
    )
    assert not Call.objects.filter(agent=desk).exists()


def test_all_choices_of_a_facet_are_shown_searched_and_folded(alice: Page, office: Office) -> None:
    shops = (
        Server(
            slug=f"shop-{n:02}", transport="http", url="https://shop.example/mcp", owner=office.bob
        )
        for n in range(facets.SHOWN * 2)
    )
    every = (
        len(Server.objects.bulk_create(shops))
        + Server.objects.exclude(slug__startswith="shop-").count()
    )
    alice.goto("/catalogue/")
    servers = alice.locator("#facet-server")
    expect(servers.get_by_role("listitem")).to_have_count(facets.SHOWN)

    servers.get_by_role("link", name=f"Show all {every}").press("Enter")
    expect(servers.get_by_role("listitem")).to_have_count(every)
    servers.get_by_role("searchbox").fill("shop-1")
    alice.keyboard.press("Enter")
    expect(servers.get_by_role("listitem")).to_have_count(6)
    servers.get_by_role("searchbox").fill("no such")
    servers.get_by_role("button", name="Search").click()
    expect(servers.get_by_text("Nothing found")).to_be_visible()
    servers.get_by_role("link", name="Show fewer").click()
    expect(servers.get_by_role("listitem")).to_have_count(facets.SHOWN)
