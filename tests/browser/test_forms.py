"""Forms filled in to their last field: rules, grants, edits, filters, servers; and copies."""

import re
from uuid import UUID

import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.roles import Role
from approvals.models import Approval, Grant
from approvals.services import vote
from audit.services import SYSTEM
from calls.models import Amendment, Call
from calls.record.states import State
from policies.models import Rule
from policies.services import remove_rule
from registry.models import Server
from tests.browser.conftest import Opened
from tests.browser.hands import choose, type_time
from tests.browser.scene import Office
from tests.console import scenery

pytestmark = pytest.mark.long

CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.mark.parametrize(
    ("address", "which"),
    [
        ("/policies/", "New rule"),
        ("/policies/", "Changes are read first"),
        ("/calls/", "Create rule from this call"),
    ],
)
def test_a_rule_with_everything_that_a_rule_can_say(
    opened: Opened, office: Office, address: str, which: str
) -> None:
    # Two of them, so that the rule can be met.
    scenery.person("carol", Role.APPROVER)
    page = opened(scenery.person("ada", Role.ADMINISTRATOR, Role.APPROVER))
    page.goto(f"/calls/{office.held}/" if address == "/calls/" else address)
    begun = page.url
    page.get_by_role("link", name=which, exact=True).press("Enter")
    page.get_by_role("link", name="Cancel").click()
    page.goto(begun)
    page.get_by_role("link", name=which, exact=True).click()
    form = page.get_by_role("main").locator("form.card")
    fill_rule(form)

    form.get_by_role("button", name="Save the rule").press("Enter")

    expect(page.get_by_text("is saved.")).to_be_visible()
    made = Rule.objects.get(name="Mails of scout")
    assert [agent.name for agent in made.agents.all()] == ["scout"]
    assert (made.effect, made.tool, made.reason) == ("ask", "send_*", "Two people read it.")
    assert made.instead == "Write a draft."
    first, later = made.thresholds
    assert first == {
        "approve": 2,
        "deny": 1,
        "from": "group:Approver",
        "distinct": "team",
        "step_up": "totp",
    }
    assert (later["approve"], later["from"], later["after_min"]) == (1, "", 15)


def test_a_rule_begins_with_a_call_a_template_and_another_rule(
    opened: Opened, office: Office
) -> None:
    page = opened(scenery.person("ada", Role.ADMINISTRATOR, Role.APPROVER))
    page.goto(f"/calls/{office.held}/rule/")
    # Open since the rule begins with the call's agent.
    page.get_by_text("any agent, or only certain ones").press("Enter")
    expect(page.get_by_role("checkbox", name="scout")).to_be_hidden()
    page.get_by_role("checkbox", name="subject is exactly “Minutes of Tuesday”").press("Space")
    page.get_by_role("button", name="Save the rule").click()
    made = Rule.objects.get(name="mailer.send_mail")
    assert made.when == 'args.subject == "Minutes of Tuesday"'

    page.get_by_role("link", name="New rule").click()
    page.get_by_text("Start from a template").press("Enter")
    page.get_by_label("Read-only tools of a server").fill("code")
    page.get_by_role("button", name="Start", exact=True).press("Enter")
    expect(page.locator("[name=when]")).to_have_value(re.compile(r"^tool\.name in \["))
    for template in ("Outside working hours", "Path under a folder", "Amount over a limit"):
        page.get_by_text("Start from a template").click()
        page.get_by_role("link", name=template).press("Enter")
        page.wait_for_url("**/new/rule/?template=*")
    page.get_by_text("Start from a template").click()
    page.get_by_role("link", name="New tool of an agent").click()
    page.get_by_role("button", name="Save the rule").click()
    page.get_by_role("link", name="New tool of an agent", exact=True).click()
    page.get_by_role("link", name="Duplicate").press("Enter")
    page.get_by_role("button", name="Save the rule").click()

    expect(page.get_by_text("is saved.")).to_be_visible()
    assert Rule.objects.filter(name="New tool of an agent (copy)").exists()


def fill_rule(form: Locator) -> None:
    for folded in form.locator("details:not([open]) > summary").all()[::-1]:
        folded.press("Enter")
    form.get_by_label("Name", exact=True).fill("Mails of scout")
    choose(form.locator("[name=effect]"), "deny")
    choose(form.locator("[name=effect]"), "ask")
    form.locator("[name=server]").fill("mailer")
    form.locator("[name=tool]").fill("send_*")
    choose(form.locator("[name=hint]"), "destructive")
    form.locator("[name=when]").fill('args.subject != ""')
    scout = form.get_by_role("checkbox", name="scout")
    # Of a call's rule it is chosen already.
    scout.set_checked(False)
    scout.press("Space")
    form.get_by_role("checkbox", name="Viewer").check()
    choose(form.locator("[name=mode]"), "shadow")
    choose(form.locator("[name=mode]"), "enforce")
    form.locator("[name=reason]").fill("Two people read it.")
    form.locator("[name=instead]").fill("Write a draft.")
    form.locator("[name=decide_within]").fill("3600")
    form.locator("[name=start_within]").fill("600")
    form.locator("[name=confirm_grants]").check()
    form.locator("[name=unnamed]").check()
    form.locator("[name=thresholds-0-approve]").fill("2")
    form.locator("[name=thresholds-0-deny]").fill("1")
    choose(form.locator("[name=thresholds-0-from]"), "group:Approver")
    choose(form.locator("[name=thresholds-0-distinct]"), "team")
    choose(form.locator("[name=thresholds-0-step_up]"), "totp")
    form.locator("[name=thresholds-1-approve]").fill("1")
    form.locator("[name=thresholds-1-after_min]").fill("15")


def approved(office: Office) -> UUID:
    call_id = scenery.call(office.scout, office.send, scenery.MAIL, State.HELD)
    approval = Approval.objects.get(pk=call_id)
    vote(approval, by=office.alice, approve=True, seen_digest=approval.call.call_digest)
    return call_id


def test_a_grant_with_every_bound(alice: Page, office: Office) -> None:
    alice.goto(f"/queue/{approved(office)}/grant/")
    # The legend stands where the labels stand.
    expect(alice.locator("legend").first).to_have_css("padding-left", "0px")
    body = alice.get_by_role("group", name="body")
    choose(body.get_by_role("combobox"), "prefix")
    body.get_by_label("It begins with").fill("")
    body.get_by_label("It begins with").press_sequentially("Hello ")
    subject = alice.get_by_role("group", name="subject")
    choose(subject.get_by_role("combobox"), "set")
    subject.get_by_label("One value a line").fill("Minutes of Tuesday\nMinutes of Friday")
    alice.get_by_label("Maximum uses").fill("3")
    alice.get_by_label("Days").fill("5")
    type_time(alice.get_by_label("Each day from"), "09:00")
    type_time(alice.get_by_label("until", exact=True), "17:00")
    alice.locator("[name=weekday]").first.check()
    alice.get_by_label("Why").fill("Minutes go out every week.")
    alice.get_by_role("button", name="What would it have covered?").click()

    alice.get_by_role("button", name="Create standing approval").press("Enter")

    expect(alice.get_by_text("is active")).to_be_visible()
    made = Grant.objects.get()
    assert (made.max_uses, made.days, made.start_minute, made.end_minute) == (3, [0], 540, 1020)
    said = {tuple(bound["path"]): bound for bound in made.bounds}
    assert said["body",]["prefix"] == "Hello "
    assert said["subject",]["values"] == ['"Minutes of Tuesday"', '"Minutes of Friday"']


def test_an_edit_adds_an_item_and_is_kept_from_the_agent(alice: Page, office: Office) -> None:
    scenery.person("carol", Role.APPROVER)
    remove_rule(Rule.objects.get(name="Nothing leaves the house"), by=SYSTEM)
    alice.goto(f"/queue/{office.held}/edit/")
    to = alice.get_by_role("group", name=re.compile("^to"))
    to.get_by_role("button", name="Add an item to to").press("Enter")
    to.get_by_role("textbox").nth(1).fill("ben@example.org")
    to.get_by_role("textbox").nth(0).fill("anna@example.org")
    choose(alice.get_by_label(re.compile("^priority")), "low")
    alice.get_by_role("button", name="Edit as JSON").click()
    expect(alice.get_by_label("Arguments as JSON")).to_have_value(re.compile("ben@example.org"))
    alice.get_by_role("button", name="Back to the fields").click()
    to.get_by_role("button", name=re.compile("Remove")).nth(0).click()
    expect(to.get_by_role("textbox")).to_have_count(1)
    alice.locator("[name=note]").fill("To Ben instead.")
    alice.locator("[name=private]").check()

    alice.get_by_role("button", name="Suggest these arguments").press("Enter")

    expect(alice.get_by_text("Your change is proposed.")).to_be_visible()
    made = Amendment.objects.get()
    assert made.private
    assert b"ben@example.org" in Call.objects.get(pk=office.held).to_send


FILTERS = {
    "person": ("alice", "/audit/"),
    "tool": ("mailer.send_mail", "/audit/"),
    "behalf": ("bob", "/audit/"),
    "server": ("mailer", "/audit/"),
    "rule": ("Everyday work", "/audit/"),
    "version": ("0123456789abcdef", "/audit/"),
    "action": ("call.held", "/audit/"),
    "since": ("2026-01-01T00:00", "/audit/"),
    "until": ("2036-01-01T00:00", "/audit/"),
    "text": ("minutes", "/audit/"),
    "agent": ("scout", "/audit/who-ran-what/"),
}


@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_of_the_record_narrows_it(alice: Page, name: str) -> None:
    value, address = FILTERS[name]
    alice.goto(address)
    more = alice.get_by_text("More filters, exact times")
    if not alice.locator(f"[data-filters] [name={name}]").is_visible():
        more.press("Enter")

    field = alice.locator(f"[data-filters] [name={name}]")
    if name in ("since", "until"):
        type_time(field, value)
    else:
        field.fill(value)
    alice.locator("[data-filters]").get_by_role("button", name="Filter", exact=True).click()

    alice.wait_for_url(re.compile(rf"[?&]{name}="))
    expect(alice.locator(f"[data-filters] [name={name}]")).to_have_value(value)


def test_the_record_is_filtered_by_choices(alice: Page) -> None:
    alice.goto("/audit/")
    alice.get_by_text("More filters, exact times").click()
    choose(alice.get_by_label("State"), "held")
    choose(alice.get_by_label("Time", exact=True), "24h")
    choose(alice.get_by_label("Decision"), "ask")
    alice.locator("[data-filters]").get_by_role("button", name="Filter", exact=True).press("Enter")

    expect(alice.locator("#entries tbody tr")).to_have_count(2)
    alice.get_by_text("As a table").first.click()
    expect(alice.get_by_role("columnheader", name="Until")).to_be_visible()
    alice.get_by_role("link", name="Clear").click()
    expect(alice.get_by_label("Decision")).to_have_value("")


def test_a_clients_json_is_pasted_tested_and_registered(alice: Page) -> None:
    alice.goto("/new/server/")
    alice.get_by_role("link", name="Paste JSON").click()
    alice.get_by_label("JSON", exact=True).fill(
        '{"mcpServers": {"sums": {"type": "http", "url": "http://127.0.0.1:9/mcp"}}}'
    )
    alice.get_by_role("button", name="Test the connection").press("Enter")
    expect(alice.get_by_text("sums: connection failed.")).to_be_visible()

    alice.get_by_role("button", name="Register all").click()

    expect(alice.get_by_role("heading", level=1)).to_contain_text("sums")
    assert Server.objects.filter(slug="sums").exists()


def test_a_server_with_all_that_it_needs(alice: Page) -> None:
    alice.goto("/new/server/")
    alice.get_by_label("Name", exact=True).fill("sums")
    alice.get_by_label("Title").fill("Sums and more")
    alice.get_by_label("URL").press_sequentially("http://127.0.0.1:9/mcp")
    alice.get_by_label("Headers").fill("X-Office: north")
    alice.get_by_label("Publish what the first discovery finds").check()
    alice.get_by_role("button", name="Register", exact=True).press("Enter")

    expect(alice.get_by_role("heading", name="What sums offers")).to_be_visible()
    assert Server.objects.get(slug="sums").title == "Sums and more"


def test_every_clients_configuration_is_copied(opened: Opened, office: Office) -> None:
    page = opened(office.alice, permissions=CLIPBOARD)
    page.goto("/toolsets/office/connect/")

    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    names = page.get_by_role("button", name=re.compile("^Copy ")).all_inner_texts()
    assert len(names) >= 8
    for n, _name in enumerate(names):
        copy = page.locator("button[data-copy]").nth(n)
        copy.press("Enter")
        expect(copy).to_contain_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()")


def test_every_facet_opens_and_narrows(alice: Page) -> None:
    alice.goto("/catalogue/")
    facets = alice.get_by_role("navigation", name="Narrow by")
    for n in range(facets.locator("details.facet").count()):
        facet = facets.locator("details.facet").nth(n)
        if facet.get_attribute("open") is None:
            facet.locator("summary").press("Enter")
        expect(facet.get_by_role("link").first).to_be_visible()

    facets.get_by_role("link", name="Published", exact=True).click()
    expect(alice).to_have_url(re.compile("state=published"))


def test_a_tools_policy_is_asked_with_arguments(alice: Page, office: Office) -> None:
    # Until the form has come, a link stands in its place.
    alice.route("**/policies/would/**", lambda route: route.fulfill(status=204))
    alice.goto(f"/tools/{office.send.exposed_name}/policy/")
    alice.get_by_role("link", name="Ask what would happen to a call").press("Enter")
    alice.wait_for_url("**/policies/explain/?tool=mailer.send_mail")
    alice.unroute("**/policies/would/**")
    alice.goto(f"/tools/{office.send.exposed_name}/policy/")
    choose(alice.get_by_label("Agent", exact=True), "scout")
    alice.get_by_label("Arguments").fill('{"to": ["ana@example.org"], "subject": "x", "body": "y"}')
    alice.get_by_role("main").get_by_role("button").last.press("Enter")

    expect(alice.get_by_text("Nothing leaves the house").first).to_be_visible()


@pytest.mark.parametrize(("said", "executed"), [("It happened", "yes"), ("It did not", "no")])
def test_what_somebody_found_out_is_written_down(
    alice: Page, office: Office, said: str, executed: str
) -> None:
    alice.goto(f"/calls/{office.lost}/")
    alice.get_by_label(said).press("Space")
    alice.get_by_label("How you know").fill("I looked into the outbox.")
    alice.get_by_role("button", name="Record outcome").press("Enter")

    expect(alice.get_by_text("Resolved").first).to_be_visible()
    assert Call.objects.get(pk=office.lost).executed == executed


def test_calls_are_filtered_by_each_choice(alice: Page) -> None:
    alice.goto("/calls/")
    choose(alice.get_by_label("State"), "live")
    alice.get_by_role("button", name="Filter", exact=True).press("Enter")

    expect(alice.locator("tbody tr")).to_have_count(3)


def test_a_payload_is_erased(opened: Opened, office: Office) -> None:
    ended = Call.objects.filter(state=State.SUCCEEDED).exclude(arguments=b"{}").latest("pk")
    page = opened(scenery.person("rita", Role.AUDITOR))
    page.goto(f"/calls/{ended.pk}/")
    page.get_by_role("link", name="Erase payload").press("Enter")
    page.get_by_role("main").get_by_role("link", name="Back to the call").click()
    page.get_by_role("link", name="Erase payload").click()
    page.get_by_label("Reason").fill("Asked for by the customer.")
    page.get_by_label("I know that this cannot be undone").check()

    page.get_by_role("main").get_by_role("button", name="Erase payload").press("Enter")

    expect(page.get_by_text("The payload was erased.", exact=True)).to_be_visible()
    ended.refresh_from_db()
    assert bytes(ended.arguments) == b"{}"
