"""One page after the other, each used to its last control; some by keyboard alone."""

import re

import pytest
from playwright.sync_api import Page, expect

from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from registry.models import Server, Toolset
from registry.services import add_server
from tests.browser.conftest import Opened
from tests.browser.hands import choose, type_time
from tests.browser.scene import Office
from tests.console import scenery
from tests.registry.offering import ADD, Offering, serving

pytestmark = pytest.mark.long


def test_who_ran_what_is_asked_with_every_filter(alice: Page, office: Office) -> None:
    alice.goto("/audit/who-ran-what/")
    form = alice.locator("[data-filters]")
    form.locator("[name=person]").fill("alice")
    form.locator("[name=agent]").fill("scout")
    form.locator("[name=tool]").fill("mailer.send_mail")
    choose(form.locator("[name=range]"), "today")
    choose(form.locator("[name=range]"), "24h")
    form.get_by_text("More filters, exact times").press("Enter")
    form.locator("[name=behalf]").fill("bob")
    form.locator("[name=server]").fill("mailer")
    form.locator("[name=version]").fill("0123456789abcdef")
    choose(form.locator("[name=decision]"), "ask")
    form.locator("[name=rule]").fill("Mails are read first")
    form.locator("[name=action]").fill("call.held")
    form.get_by_role("button", name="Filter", exact=True).press("Enter")
    expect(alice.get_by_text("No calls")).to_be_visible()
    expect(form.locator("[name=rule]")).to_have_value("Mails are read first")
    alice.go_back()
    expect(form.locator("[name=rule]")).to_have_value("")

    alice.goto("/audit/who-ran-what/?agent=scout")
    form.get_by_text("More filters, exact times").click()
    type_time(form.locator("[name=since]"), "2026-01-01T00:00")
    type_time(form.locator("[name=until]"), "2036-01-01T12:30")
    form.get_by_role("button", name="Filter", exact=True).click()
    expect(alice.get_by_role("heading", name="Summary")).to_be_visible()
    alice.get_by_role("main").get_by_role("link", name="scout", exact=True).first.press("Enter")
    alice.wait_for_url("**/audit/?agent=scout")
    alice.go_back()
    form.get_by_role("link", name="Clear").press("Enter")
    expect(form.locator("[name=agent]")).to_have_value("")


def test_every_fold_of_an_entry_opens(alice: Page, office: Office) -> None:
    entry = Entry.objects.of_call(office.pictured).last()
    assert entry
    alice.goto(f"/audit/{entry.pk}/")

    alice.get_by_text("The proof, as verify.py reads it").press("Enter")
    with alice.expect_download() as file:
        alice.get_by_role("link", name="verify.py").press("Enter")
    assert file.value.suggested_filename == "verify.py"
    alice.get_by_text("The whole entry as JSON").click()
    expect(alice.locator("pre", has_text=f'"id": {entry.pk}').last).to_be_visible()
    alice.get_by_text("What was asked, and what came back").press("Enter")
    expect(alice.locator("#payload").get_by_text("Utrecht", exact=True)).to_be_visible()
    alice.locator("#payload").get_by_text("As the agent wrote them").click()
    expect(alice.locator("#payload pre").first).to_be_visible()
    alice.locator("#payload").get_by_text("As JSON", exact=True).press("Enter")
    with alice.expect_download():
        alice.locator("#payload").get_by_role("link", name=re.compile("^Download")).press("Enter")


def test_how_a_server_is_reached_is_changed_and_it_is_switched_off(
    alice: Page, office: Office
) -> None:
    offering = Offering()
    offering.tools = [ADD]
    with serving(offering) as url:
        alice.goto("/servers/mailer/")
        alice.get_by_role("link", name="Edit").press("Enter")
        alice.get_by_label("URL").fill(f"{url}/mcp")
        alice.get_by_label("Credential").fill("s3cret")
        alice.get_by_label("Headers").fill("X-Office: north")
        alice.get_by_role("button", name="Test the connection").press("Enter")
        expect(alice.get_by_text("mailer answers and offers 1 tool.")).to_be_visible()
        alice.get_by_text("Its tools", exact=True).click()
        expect(alice.get_by_text("Adds two numbers.")).to_be_hidden()
        alice.get_by_role("button", name="Save the server").click()
        expect(alice.get_by_text("is reached in the new way")).to_be_visible()
        assert offering.asked[-1]["X-Office"] == "north"
        assert offering.asked[-1]["Authorization"] == "Bearer s3cret"
        alice.goto("/servers/mailer/")
        alice.get_by_role("button", name="Refresh now").press("Enter")
        expect(alice.get_by_role("main")).to_contain_text("mailer")

    alice.goto("/servers/mailer/edit/")
    relay = alice.get_by_role("group", name="What it may ask of agents").get_by_role("checkbox")
    chosen = not relay.first.is_checked()
    relay.first.press("Space")
    alice.get_by_role("button", name="Save what it may ask").press("Enter")
    expect(alice.get_by_text("What “mailer” may ask of agents is set.")).to_be_visible()
    expect(relay.first).to_be_checked(checked=chosen)
    spoken = alice.get_by_label("Version", exact=True)
    choose(spoken, "2025-11-25")
    alice.get_by_role("button", name="Save the revision").press("Enter")
    expect(alice.get_by_text("2025-11-25 is set")).to_be_visible()
    alice.get_by_role("link", name="Edit").click()
    expect(spoken).to_have_value("2025-11-25")
    choose(spoken, "The newest that both sides know")
    alice.get_by_role("button", name="Save the revision").click()
    expect(alice.get_by_text("spoken to in is set")).to_be_visible()
    alice.goto("/servers/mailer/edit/")
    methods = alice.get_by_label("Methods", exact=True)
    methods.fill("acme/search\ntools/list")
    alice.get_by_role("button", name="Save what it may be asked").press("Enter")
    expect(alice.get_by_text("“tools/list” is a method of MCP itself")).to_be_visible()
    methods.fill("acme/search")
    alice.get_by_role("button", name="Save what it may be asked").press("Enter")
    expect(alice.get_by_text("The extension methods of “mailer” are set.")).to_be_visible()
    alice.goto("/servers/mailer/edit/")
    expect(methods).to_have_value("acme/search")
    alice.get_by_role("link", name="Disable").press("Enter")
    alice.get_by_label("Reason (optional)").fill("It moves.")
    alice.get_by_role("button", name="Disable the server").click()
    expect(alice.get_by_text("agents do not see its tools")).to_be_visible()
    alice.get_by_role("link", name="Edit").click()
    alice.get_by_role("button", name="Enable").click()
    expect(alice.get_by_text("“mailer” is on.")).to_be_visible()
    assert Server.objects.get(slug="mailer").enabled


def test_a_long_argument_unfolds_where_one_decides_and_where_one_looks(
    alice: Page, office: Office
) -> None:
    long = Call.objects.get(state=State.HELD, tool_name="files.write_file").pk
    for address in (f"/queue/{long}/", f"/calls/{long}/"):
        alice.goto(address)
        fold = alice.locator("details.fold").first
        fold.locator("summary").press("Enter")
        expect(fold.get_by_text("the budget is agreed").last).to_be_visible()
        fold.locator("summary").click()
        expect(fold).not_to_have_attribute("open", "")


def test_the_picture_of_the_record_is_skipped(alice: Page, office: Office) -> None:
    alice.goto("/audit/")
    alice.get_by_role("link", name="Skip the chart").press("Enter")
    expect(alice.locator("#entries")).to_be_focused()


def test_what_stands_on_a_servers_page_leads_on(alice: Page, office: Office) -> None:
    scenery.finish(office.running, {"content": []}, State.FAILED, "It hung up.")
    report = Call.objects.get(pk=office.running).server
    assert report
    add_server(Toolset.objects.get(), report, by=office.alice)
    alice.goto(f"/servers/{report.slug}/")
    errors = alice.get_by_role("region", name="Recent errors").get_by_role("link")
    # Until they have come, a link stands there that leads to all of them.
    errors.filter(has_not_text="Show its failed calls").first.press("Enter")
    alice.wait_for_url(f"**/calls/{office.running}/")
    alice.go_back()
    alice.get_by_role("main").get_by_role("link", name="office").click()
    alice.wait_for_url("**/toolsets/office/")


def test_everything_beside_a_new_token_is_copied(opened: Opened, office: Office) -> None:
    page = opened(office.bob, permissions=["clipboard-read", "clipboard-write"])
    page.goto("/agents/scout/")
    page.get_by_role("button", name="Create token").click()
    token = page.locator("#token").inner_text()
    page.get_by_text("Configuration for each client").press("Enter")
    buttons = page.locator("main button[data-copy]")
    with_token = 0
    for n in range(buttons.count()):
        buttons.nth(n).press("Enter") if n % 2 else buttons.nth(n).click()
        expect(buttons.nth(n)).to_contain_text("Copied")
        with_token += token in page.evaluate("navigator.clipboard.readText()")

    # In the others the client reads it from the shell's variable.
    assert with_token >= 3


def test_the_page_that_finds_is_used_by_keyboard(alice: Page, office: Office) -> None:
    alice.goto("/find/")
    alice.get_by_label("Name").fill("send")
    alice.keyboard.press("Enter")
    alice.wait_for_url("**/find/?q=send")
    alice.get_by_label("Name").fill("words")
    alice.get_by_role("button", name="Find", exact=True).click()
    alice.wait_for_url("**/find/?q=words")
    alice.go_back()
    alice.reload()
    alice.get_by_role("main").get_by_role("link", name=re.compile("mailer.send_mail")).press(
        "Enter"
    )

    alice.wait_for_url("**/tools/mailer.send_mail/")
