"""Settings as people use them: a token, a toolset, a server, the order of rules."""

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from policies.models import Rule
from registry.models import Server, Tool, Toolset
from tests.browser.conftest import Opened
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.console import scenery
from tests.registry.offering import ADD, Offering, serving

pytestmark = pytest.mark.long

CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.fixture
def ada(office: Office) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


def test_an_owner_issues_copies_and_revokes_a_token(opened: Opened, office: Office) -> None:
    page = opened(office.bob, permissions=CLIPBOARD)
    page.goto("/settings/")
    page.locator("main").get_by_role("link", name="Agents").click()
    page.get_by_role("link", name="scout").click()

    page.get_by_label("Valid for days").fill("7")
    page.keyboard.press("Enter")
    token = page.locator("#token").inner_text()
    page.get_by_role("button", name="Copy the token").click()

    expect(page.get_by_role("button", name="Copied the token")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == token
    page.get_by_text("Configuration for each client").click()
    expect(page.locator("#snippet-token")).to_have_text(f"export COUNTERSIGN_TOKEN={token}")
    expect(page.locator("#claude-desktop")).to_contain_text(f"Bearer {token}")
    row = AgentToken.objects.first()
    assert row
    page.get_by_role("link", name=f"Revoke csa_{row.public_id}").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("and cannot be restored")).to_be_visible()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name=f"Revoke csa_{row.public_id}").click()
    page.get_by_label("Reason (optional)").fill("It stood in a log.")
    page.keyboard.press("Enter")
    expect(page.get_by_text("it opens nothing any more")).to_be_visible()
    expect(page.locator("#token")).to_have_count(0)


def test_without_javascript_a_token_is_issued_and_the_way_on_is_a_link(
    opened: Opened, office: Office
) -> None:
    page = opened(office.bob, java_script_enabled=False)
    page.goto("/agents/scout/")

    page.get_by_role("button", name="Create token").click()

    expect(page.locator("#token")).to_contain_text("csa_")
    expect(page.get_by_role("button", name="Copy the token")).to_have_count(0)
    page.get_by_role("link", name="How to connect a client with it").click()
    expect(page.get_by_role("heading", name="Connect scout")).to_be_visible()


def test_without_javascript_what_removing_a_rule_concerns_is_a_page(
    opened: Opened, ada: User
) -> None:
    rule = Rule.objects.create(name="Mails", effect="ask", server="mailer")
    page = opened(ada, java_script_enabled=False)
    page.goto(f"/policies/{rule.pk}/remove/")

    page.get_by_role("link", name="What removing it concerns").click()

    expect(page.get_by_text("Published tools that it covers")).to_be_visible()
    page.get_by_role("link", name="Back").press("Enter")
    page.get_by_role("button", name="Remove the rule").click()
    expect(page.get_by_text("“Mails” is removed.")).to_be_visible()


def test_a_rule_is_tried_on_the_last_week_before_it_is_saved(opened: Opened, ada: User) -> None:
    page = opened(ada)
    page.goto("/new/rule/")
    page.get_by_label("Name", exact=True).fill("Mails are read")
    page.get_by_label("Tool", exact=True).fill("send_mail")
    choose(page.get_by_label("Effect", exact=True), "ask")

    page.get_by_role("button", name="Try on the last 7 days").press("Enter")

    expect(page.locator("#trial")).to_contain_text("Would have required approval")
    expect(page.locator("#trial")).to_contain_text("calls of the last 7 days were judged again")
    assert not Rule.objects.filter(name="Mails are read").exists()
    page.get_by_label("Condition").fill("args.")
    page.get_by_role("button", name="Try on the last 7 days").click()
    expect(page.locator("#trial .error")).to_contain_text("Condition:")


@pytest.mark.parametrize("script", [True, False])
def test_a_rule_that_only_monitors_shows_its_report(
    opened: Opened, ada: User, script: bool
) -> None:
    rule = Rule.objects.create(name="Watched", effect="ask", tool="send_mail", mode="shadow")
    page = opened(ada, java_script_enabled=script)
    page.goto("/policies/")

    page.locator(f"#rule-{rule.pk}").get_by_role("link", name="What it would have done").press(
        "Enter"
    )

    expect(page.get_by_role("heading", name="Watched")).to_be_visible()
    expect(page.get_by_text("Would have required approval")).to_be_visible()
    page.goto(f"/policies/{rule.pk}/")
    page.get_by_role("button", name="Try on the last 7 days").click()
    expect(page.get_by_text("calls of the last 7 days were judged again")).to_be_visible()
    rule.refresh_from_db()
    assert rule.mode == "shadow"


def test_tools_are_found_and_added_with_the_keyboard(alice: Page, office: Office) -> None:
    alice.goto("/toolsets/office/")

    alice.get_by_label("Find a tool to add").fill("forecast")
    alice.keyboard.press("Enter")
    alice.get_by_label("weather.forecast").focus()
    alice.keyboard.press("Space")
    alice.keyboard.press("Tab")
    alice.keyboard.press("Enter")

    expect(alice.get_by_role("button", name="Remove weather.forecast")).to_be_visible()
    assert Toolset.objects.get().tools.filter(name="forecast").exists()


@pytest.mark.parametrize("script", [True, False])
def test_a_tool_is_renamed_and_described_with_the_keyboard(
    opened: Opened, office: Office, script: bool
) -> None:
    page = opened(office.alice, java_script_enabled=script, viewport={"width": 360, "height": 740})
    page.goto("/toolsets/office/")
    page.get_by_role("link", name="mailer_send_mail").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Back to the toolset").press("Enter")
    page.wait_for_url("**/toolsets/office/")
    page.go_back()

    page.get_by_label("Name for agents").focus()
    page.keyboard.type("post")
    page.keyboard.press("Tab")
    page.keyboard.type("Post")
    page.keyboard.press("Tab")
    page.keyboard.type("Letters of the office.")
    page.keyboard.press("Tab")
    page.keyboard.type('{"subject": "From the office"}')
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.get_by_text("as you said")).to_be_visible()
    expect(page.get_by_text("mcp__countersign__post").first).to_be_visible()
    expect(page.locator("pre")).to_contain_text('"title": "Post"')
    expect(page.locator("pre")).to_contain_text("Letters of the office.")
    expect(page.locator("pre")).not_to_contain_text('"subject"')
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    if script:
        assert not page.evaluate(wide)
    page.goto("/toolsets/office/")
    expect(page.get_by_role("link", name="post", exact=True)).to_be_visible()


def test_separator_and_seconds_are_set_with_the_keyboard(alice: Page, office: Office) -> None:
    alice.goto("/toolsets/office/")
    choose(alice.get_by_label("Between server and tool"), "-")
    alice.get_by_role("button", name="Save the separator").press("Enter")
    expect(alice.get_by_role("link", name="mailer-send_mail")).to_be_visible()

    alice.get_by_label("Seconds until an agent").fill("4")
    alice.get_by_role("button", name="Save the seconds").press("Enter")
    expect(alice.get_by_label("Seconds until an agent")).to_have_value("4")

    choose(alice.get_by_label("Between server and tool"), "_")
    alice.get_by_role("button", name="Save the separator").click()
    alice.get_by_role("button", name="Save the seconds").click()
    expect(alice.get_by_role("link", name="mailer_send_mail")).to_be_visible()


def test_an_agents_seconds_are_set_with_the_keyboard(alice: Page, office: Office) -> None:
    alice.goto("/agents/scout/")
    alice.get_by_label("Wait before answering").fill("4")
    alice.get_by_role("button", name="Save the wait").press("Enter")
    expect(alice.get_by_label("Wait before answering")).to_have_value("4")

    alice.get_by_label("Wait before answering").fill("")
    alice.get_by_role("button", name="Save the wait").click()
    expect(alice.get_by_label("Wait before answering")).to_have_value("")
    assert Agent.objects.get(name="scout").hold_s is None


def test_whole_servers_are_chosen_and_seen(alice: Page, office: Office) -> None:
    alice.goto("/toolsets/office/")

    alice.get_by_label("calculator").check()
    alice.get_by_role("button", name="Save the servers").click()

    expect(alice.get_by_text("are as chosen")).to_be_visible()
    expect(alice.get_by_role("link", name="calculator_add")).to_be_visible()


def test_a_typed_token_fills_the_snippets_and_is_never_sent(alice: Page, office: Office) -> None:
    sent: list[str] = []
    alice.on("request", lambda request: sent.append(f"{request.url} {request.post_data}"))
    alice.goto("/toolsets/office/connect/")

    alice.get_by_label("Token", exact=True).press_sequentially("csa_abc")

    expect(alice.locator("#claude-desktop")).to_contain_text("Bearer csa_abc")
    expect(alice.locator("#codex")).to_contain_text("bearer_token_env_var")
    alice.locator("summary", has_text="Cursor").click()
    link = alice.get_by_role("link", name="Add to Cursor").get_attribute("href")
    assert link
    assert link.startswith("cursor://anysphere.cursor-deeplink/mcp/install?")
    assert not [request for request in sent if "csa_abc" in request]


def test_a_server_is_tested_registered_and_published(alice: Page, office: Office) -> None:
    offering = Offering()
    offering.tools = [ADD]
    with serving(offering) as url:
        alice.goto("/catalogue/")
        alice.get_by_role("link", name="Register a server").click()
        alice.get_by_label("Name", exact=True).fill("sums")
        alice.get_by_label("URL").fill("http://127.0.0.1:9/mcp")
        alice.get_by_label("Credential").fill("s3cret")
        alice.get_by_role("button", name="Test the connection").click()
        expect(alice.get_by_text("sums: connection failed.")).to_be_visible()

        alice.get_by_label("URL").fill(f"{url}/mcp")
        alice.get_by_role("button", name="Test the connection").click()
        expect(alice.get_by_text("sums answers and offers 1 tool.")).to_be_visible()
        alice.get_by_text("Its tools", exact=True).press("Enter")
        assert not Server.objects.filter(slug="sums").exists()
        # A test takes nothing away, not even what is never shown again.
        expect(alice.get_by_label("Credential")).to_have_value("s3cret")
        alice.get_by_role("button", name="Register", exact=True).click()

    expect(alice.get_by_role("heading", name="What sums offers")).to_be_visible()
    expect(alice.get_by_label("Publish sums.add")).to_be_checked()
    alice.get_by_role("button", name="Publish selected").click()
    expect(alice.get_by_text("Published: 1. No agent gets it")).to_be_visible()
    assert Tool.objects.get(exposed_name="sums.add").state == Tool.State.PUBLISHED


def test_a_rule_moves_earlier_and_is_dragged_later(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada)
    page.goto("/policies/")
    page.get_by_role("button", name="Move Mails are read first earlier").click()
    expect(page.locator(".rules > li:nth-child(3)")).to_contain_text("Mails are read first")
    expect(page.get_by_role("button", name="Move Mails are read first earlier")).to_be_focused()

    first = page.locator(".rules > li").first
    first.drag_to(page.locator(".rules > li").nth(2), target_position={"x": 20, "y": 40})
    expect(page.locator(".rules > li").first).not_to_contain_text("Everyday work")

    shown = page.locator(".rules .title").all_inner_texts()
    assert [rule.name for rule in Rule.objects.in_order()] == shown


def test_rules_are_ordered_with_the_keyboard_alone(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada)
    page.goto("/policies/")
    later = page.get_by_role("button", name="Move Everyday work later")

    later.focus()
    for place in (2, 3):
        page.keyboard.press("Enter")
        row = page.locator(f".rules > li:nth-child({place})")
        expect(row).to_contain_text("Everyday work")
        expect(later).to_be_focused()

    assert [rule.name for rule in Rule.objects.in_order()][2] == "Everyday work"


def test_a_rule_counts_while_it_is_written_and_can_be_removed(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada)
    page.goto("/policies/")
    page.get_by_role("link", name="New rule").click()

    page.get_by_label("Name", exact=True).fill("No files")
    page.get_by_label("Tool", exact=True).fill("write")
    picks = page.locator("#tool-picks option")
    expect(picks).to_have_count(1)
    expect(picks).to_have_attribute("label", "write_file\u00a0· of 1 server")
    page.get_by_label("Tool", exact=True).fill("*")
    page.get_by_label("Server", exact=True).fill("files")
    servers = page.locator("#server-picks option")
    expect(servers).to_have_count(1)
    expect(servers).to_have_attribute("label", "files\u00a0· 1 published tool")
    expect(page.locator("#covers")).to_contain_text("Covers 1 published tool today.")
    expect(page.locator("#covers")).to_contain_text("calls in the last 7 days.")
    page.get_by_label("Server", exact=True).fill("nowhere")
    expect(page.locator("#covers")).to_have_text("Covers no published tool today.")
    choose(page.get_by_label("Effect"), "deny")
    page.get_by_role("button", name="Save the rule").click()
    expect(page.get_by_text("is saved.")).to_be_visible()

    page.get_by_role("link", name="No files", exact=True).click()
    page.get_by_role("link", name="Remove").click()
    expect(page.get_by_text("Published tools that it covers")).to_be_visible()
    rule = Rule.objects.get(name="No files")
    # What the page draws within itself has an address of its own.
    page.goto(f"/policies/{rule.pk}/removal/")
    page.get_by_role("link", name="Back").press("Enter")
    page.get_by_role("button", name="Remove the rule").click()
    expect(page.get_by_text("“No files” is removed.")).to_be_visible()


def test_without_javascript_a_button_counts_what_a_rule_covers(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada, java_script_enabled=False)
    page.goto("/new/rule/")
    page.get_by_label("Server", exact=True).fill("files")
    page.get_by_role("button", name="Count what it covers").click()

    expect(page.locator("#covers")).to_contain_text("Covers 1 published tool today.")
    expect(page.get_by_label("Server", exact=True)).to_have_value("files")


def test_somebody_is_invited_and_comes_in(opened: Opened, office: Office, ada: User) -> None:
    page = opened(ada)
    page.goto("/people/")
    page.get_by_role("link", name="Invite user").click()
    page.get_by_label("Username", exact=True).fill("carol")
    page.get_by_label("Approver").check()
    page.get_by_role("button", name="Create link").click()
    link = page.locator("#link").inner_text()
    page.get_by_role("link", name="Approved, denied, time from request to vote").press("Enter")
    page.wait_for_url("**/decisions/")

    theirs = opened()
    theirs.goto("/" + link.split("/", 3)[3])
    theirs.get_by_role("button", name="Sign in").click()
    theirs.goto("/profile/")
    theirs.get_by_label("New password", exact=True).fill("a quiet harbour at dusk")
    theirs.get_by_label("New password again").fill("a quiet harbour at dusk")
    theirs.keyboard.press("Enter")

    expect(theirs.get_by_text("Your password is set.")).to_be_visible()
    expect(theirs.get_by_role("banner").get_by_text("Approver")).to_be_visible()
