"""What operators keep: servers, tags, who gets which toolset."""

import re

import pytest
from playwright.sync_api import Page, expect

from inspection.results import ResultRules
from registry.models import Item, Server, Tool, Toolset
from tests.browser.conftest import Opened
from tests.browser.every_page import shelve
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.registry.offering import ADD, Offering, serving

pytestmark = pytest.mark.long

CLIPBOARD = ["clipboard-read", "clipboard-write"]


def test_a_server_is_asked_again_moved_and_switched_off_and_on(alice: Page, office: Office) -> None:
    offering = Offering()
    offering.tools = [ADD]
    alice.goto("/servers/")
    alice.get_by_role("link", name="calculator").click()
    alice.get_by_role("button", name="Refresh now").press("Enter")
    expect(alice.get_by_text("The server is being asked.")).to_be_visible()

    alice.get_by_role("link", name="Edit", exact=True).click()
    with serving(offering) as url:
        alice.get_by_label("URL").fill(f"{url}/mcp")
        alice.get_by_role("button", name="Test the connection").click()
        expect(alice.get_by_text("calculator answers and offers 1 tool.")).to_be_visible()
        alice.get_by_role("button", name="Save the server").press("Enter")
        alice.wait_for_url(re.compile("/servers/calculator/"))
    assert Server.objects.get(slug="calculator").url == f"{url}/mcp"

    alice.goto("/servers/calculator/edit/")
    alice.get_by_role("link", name="Disable").focus()
    alice.keyboard.press("Enter")
    alice.get_by_role("link", name="Cancel").click()
    alice.goto("/servers/calculator/disable/")
    alice.get_by_role("button", name="Disable the server").press("Enter")
    expect(alice.get_by_role("main")).to_contain_text("Disabled")
    assert not Server.objects.get(slug="calculator").enabled
    alice.goto("/servers/calculator/edit/")
    alice.get_by_role("button", name="Enable").click()
    alice.wait_for_url("**/servers/calculator/")
    expect(alice.get_by_role("button", name="Refresh now")).to_be_visible()


def test_what_waits_at_a_server_is_reviewed_and_published_together(
    alice: Page, office: Office
) -> None:
    alice.goto("/servers/words/")
    alice.get_by_role("link", name="Review it").click()
    alice.get_by_role("link", name="Not now").click()
    alice.wait_for_url("**/servers/words/")
    alice.go_back()

    chosen = alice.get_by_label("Publish words.translate")
    expect(chosen).not_to_be_checked()
    chosen.press("Space")
    alice.get_by_label("Why it is published anyway").fill("We know it.")
    alice.get_by_role("button", name="Publish selected").press("Enter")

    expect(alice.get_by_text("Published: 1.")).to_be_visible()
    assert Tool.objects.get(exposed_name="words.translate").state == Tool.State.PUBLISHED


def test_what_a_server_offers_beside_tools_is_read_and_published(
    alice: Page, office: Office
) -> None:
    shelve(office.sly.server)
    alice.goto("/servers/words/items/")
    changed = alice.get_by_role("listitem").filter(has_text="Version 2, as its server says now")
    changed.get_by_text("Version 2, as its server says now").press("Enter")
    expect(changed.locator("pre").first).to_contain_text("Read me first.")
    changed.get_by_text("Version 1, which was published").click()
    expect(changed.locator("pre").last).not_to_contain_text("Read me first.")
    alice.get_by_role("link", name="Review it").press("Enter")
    alice.wait_for_url("**/servers/words/review/")

    template = alice.get_by_role("listitem").filter(has_text="notes://day/{day}")
    template.get_by_text("As its server wrote it").press("Enter")
    expect(template.locator("pre")).to_contain_text("One day's notes.")
    alice.get_by_label("Publish notes://day/{day}").press("Space")
    alice.get_by_label("Publish words.translate").check()
    alice.get_by_label("Why it is published anyway").fill("We know it.")
    alice.get_by_role("button", name="Publish selected").click()

    expect(alice.get_by_text("Published: 2.")).to_be_visible()
    alice.get_by_label("Publish notes://day/{day}").check()
    alice.get_by_role("button", name="Publish selected").click()

    expect(alice.get_by_text("Published: 1.")).to_be_visible()
    expect(template).to_have_count(0)
    states = Item.objects.filter(server=office.sly.server).values_list("state", flat=True)
    assert set(states) == {Item.State.PUBLISHED}


def test_tags_are_written_and_found_by(alice: Page, office: Office) -> None:
    alice.goto(f"/tools/{office.search.exposed_name}/")
    alice.locator("section", has_text="Tags").get_by_text("Edit").click()

    alice.get_by_label("Tags, with a space between").fill("daily code")
    alice.keyboard.press("Enter")

    alice.get_by_role("link", name="daily").click()
    expect(alice.locator("#found .rows .title")).to_have_text(["code.search"])
    alice.go_back()
    alice.locator("section", has_text="Tags").get_by_text("Edit").focus()
    alice.keyboard.press("Enter")
    alice.get_by_label("Tags, with a space between").fill("")
    alice.get_by_role("button", name="Save the tags").click()
    expect(alice.get_by_text("People find tools by their tags")).to_be_visible()


def test_the_whole_definition_is_shown(alice: Page, office: Office) -> None:
    alice.goto(f"/tools/{office.search.exposed_name}/")

    alice.get_by_text("The whole definition as JSON").press("Enter")

    expect(alice.locator("details[open] pre")).to_contain_text('"inputSchema"')


def test_a_toolset_loses_a_tool_and_gets_agents(opened: Opened, office: Office) -> None:
    page = opened(office.alice, permissions=CLIPBOARD)
    page.goto("/toolsets/office/")
    page.get_by_role("button", name="Copy the address").click()
    expect(page.get_by_role("button", name="Copied the address")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").endswith("/mcp/office")

    # What is held stays in the toolset, or no vote could let it be sent.
    for tool in ("mailer.send_mail", "files.write_file"):
        page.get_by_role("button", name=f"Remove {tool}").press("Enter")
        expect(page.get_by_role("button", name=f"Remove {tool}")).to_have_count(0)
    expect(page.get_by_text("None: it offers whole servers only.")).to_be_visible()
    page.get_by_label("ledger-clerk").uncheck()
    page.get_by_role("button", name="Save the agents").click()
    expect(page.get_by_label("ledger-clerk")).not_to_be_checked()
    made = Toolset.objects.get(slug="office")
    assert [agent.name for agent in made.agents.all()] == ["scout"]
    page.get_by_label("ledger-clerk").press("Space")
    page.get_by_role("button", name="Save the agents").press("Enter")
    expect(page.get_by_label("ledger-clerk")).to_be_checked()
    assert {agent.name for agent in made.agents.all()} == {"scout", "ledger-clerk"}

    own = page.locator("[name=own]").first
    own.uncheck()
    page.get_by_role("button", name="Save the tools for own calls").press("Enter")
    expect(own).not_to_be_checked()
    made.refresh_from_db()
    assert own.get_attribute("value") not in made.own_tools

    page.get_by_label("The list of all tools").press("ArrowDown")
    page.get_by_role("button", name="Save what agents get").press("Enter")
    expect(page.get_by_label("Four tools for searching")).to_be_checked()
    made.refresh_from_db()
    assert made.search_mode


def test_an_agents_toolsets_are_chosen_on_its_page(alice: Page, office: Office) -> None:
    alice.goto("/agents/ledger-clerk/")

    for press in ("Space", "Enter"):
        before = alice.get_by_label("office").is_checked()
        alice.get_by_label("office").press("Space")
        alice.get_by_role("button", name="Save the toolsets").press(press)
        alice.goto("/agents/ledger-clerk/")
        expect(alice.get_by_label("office")).to_be_checked(checked=not before)
    alice.get_by_role("link", name="Its calls").click()
    alice.wait_for_url("**/calls/?agent=ledger-clerk")

    # What the page draws within itself is a page for those without JavaScript.
    alice.goto("/agents/ledger-clerk/toolsets/")
    alice.get_by_label("office").press("Space")
    alice.get_by_role("button", name="Save the toolsets").press("Enter")
    alice.wait_for_url("**/agents/ledger-clerk/")
    expect(alice.get_by_label("office")).not_to_be_checked()
    alice.goto("/agents/scout/connect/")
    alice.get_by_text("Configuration for each client").press("Enter")
    expect(alice.locator("#claude-desktop")).to_contain_text("mcpServers")


def test_a_server_that_was_registered_by_mistake_is_deleted(alice: Page, office: Office) -> None:
    alice.goto("/servers/mailer/edit/")
    alice.get_by_role("link", name="Delete", exact=True).press("Enter")
    alice.get_by_role("link", name="Calls that have not ended").press("Enter")
    alice.wait_for_url("**/calls/?state=live")
    for press in ("link", "button"):
        alice.goto("/servers/weather/edit/")
        alice.get_by_role("link", name="Delete", exact=True).click()
        if press == "link":
            alice.get_by_role("link", name="Keep it").press("Enter")
            alice.wait_for_url("**/servers/weather/")
    alice.get_by_role("button", name="Delete the server").press("Enter")

    expect(alice.get_by_text("“weather” is deleted.")).to_be_visible()
    expect(alice.locator(".rows .title", has_text="weather")).to_have_count(0)


def test_rules_are_asked_what_would_happen(alice: Page, office: Office) -> None:
    alice.goto("/policies/")
    alice.get_by_role("link", name=re.compile("Policy simulator")).click()

    tool = alice.get_by_label("Tool", exact=True)
    tool.press_sequentially("send")
    offered = alice.locator("#tool-picks option")
    expect(offered).to_have_count(1)
    expect(offered).to_have_attribute("value", "mailer.send_mail")
    tool.fill("mailer.send_mail")
    choose(alice.get_by_label("Agent", exact=True), "scout")
    alice.get_by_label("Arguments").fill("{}")
    alice.get_by_role("button", name="Evaluate").press("Enter")

    expect(alice.get_by_text("Nothing leaves the house").first).to_be_visible()


def test_how_a_tools_calls_are_handled_is_changed(alice: Page, office: Office) -> None:
    alice.goto(f"/tools/{office.search.exposed_name}/")
    alice.get_by_text("Change how its calls are handled").press("Enter")
    choose(alice.get_by_label("Runs"), "background")
    alice.get_by_label("Time limit in seconds").fill("90")
    alice.get_by_label("Retry-safe").press("Space")
    alice.get_by_label("Read-only, confirmed").press("Space")
    alice.get_by_label("Cancelled calls need nobody").press("Space")
    choose(alice.get_by_label("The same call again within ten minutes"), "guard")
    alice.get_by_role("button", name="Save the handling").click()

    expect(alice.get_by_text("is handled as chosen")).to_be_visible()
    changed = Tool.objects.get(pk=office.search.pk)
    assert (changed.mode, changed.timeout_s, changed.repeats) == ("background", 90, "guard")
    assert changed.safe_to_repeat
    assert changed.confirmed_read_only
    assert changed.cancel_is_final
    expect(alice.get_by_text("Confirmed by an operator")).to_be_visible()


def test_what_is_done_to_a_tools_results_is_chosen(alice: Page, office: Office) -> None:
    alice.goto(f"/tools/{office.search.exposed_name}/")
    expect(alice.get_by_text("Agents get them byte for byte")).to_be_visible()
    alice.get_by_text("Change what is done to its results").press("Enter")
    choose(alice.get_by_label("Results that do not fit the output schema"), "block")
    choose(alice.get_by_label("Hidden characters and terminal commands"), "remove")
    alice.get_by_label("Mask secrets").press("Space")
    alice.get_by_label("Mask personal data").press("Space")
    alice.get_by_label("Leave out tracebacks").press("Space")
    alice.get_by_label("Most bytes of a result").fill("4096")
    alice.get_by_label("Deactivate links and images").press("Space")
    alice.get_by_label("Except those of these hosts").fill("*.example.org")
    choose(alice.get_by_label("Mark as data for the model"), "found")
    alice.get_by_label("Mask by patterns of your own").fill("ticket: T-[0-9]+")
    alice.get_by_role("button", name="Save the result rules").press("Enter")

    expect(alice.get_by_text("are treated as chosen")).to_be_visible()
    changed = Tool.objects.get(pk=office.search.pk)
    assert changed.result_rules == ResultRules(
        *("block", "remove", True, True, True, 4096),
        *(True, "*.example.org", "found", "ticket: T-[0-9]+"),
    )
    expect(alice.get_by_text("Deactivated, except those of *.example.org")).to_be_visible()
    expect(alice.get_by_text("4.0\u00a0KB")).to_be_visible()
