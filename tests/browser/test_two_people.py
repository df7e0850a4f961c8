"""One person as both who asks and who approves, in a real browser: refused, marked, or seen."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from playwright.sync_api import expect

from accounts.models import Agent, User
from accounts.roles import Role
from approvals.models import Vote
from calls.models import Call
from calls.record.states import State
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.ways import WAYS, Attempt, Stage
from tests.console import scenery
from tests.database import Cleaner
from tests.processes import Stack

SECURITY = Path(__file__).parents[2] / "docs" / "en" / "concepts" / "security-model.md"
ROW = re.compile(r"^\| (?P<way>[^|]+) \| \*\*(?P<outcome>[^*]+)\*\*", re.M)


def test_who_created_the_agent_finds_no_button(opened: Opened, office: Office) -> None:
    pat = scenery.person("pat", Role.OPERATOR, Role.APPROVER)
    page = opened(pat)
    page.goto("/new/agent/")
    page.get_by_label("Name").fill("courier")
    page.get_by_label("Owner").select_option(label="bob")
    page.get_by_role("button", name="Create agent").click()
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("#token")).to_contain_text("csa_")
    agent = Agent.objects.get(name="courier")
    scenery.offered(agent, office.send)
    token = agent.tokens.get().pk
    held = scenery.call(agent, office.send, scenery.MAIL, State.HELD, token_id=token)

    page.goto(f"/queue/{held}/")

    card = page.locator(f"#card-{held}")
    expect(card).to_contain_text("You created the agent: another user must decide.")
    expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    expect(card).to_contain_text("The agent was created by pat")
    assert Call.objects.get(pk=held).state == State.HELD


def test_a_second_administrator_confirms_an_approver_whom_cards_show(
    opened: Opened, office: Office
) -> None:
    ada, eve = (scenery.person(name, Role.ADMINISTRATOR) for name in ("ada", "eve"))
    vera = scenery.person("vera", Role.VIEWER)
    hers, other = opened(ada), opened(eve, viewport={"width": 360, "height": 780})
    hers.goto(f"/people/{vera.pk}/")
    hers.get_by_label("Approver").check()
    hers.get_by_role("button", name="Save roles and groups").click()
    expect(hers.get_by_text("Another administrator has to confirm: Approver")).to_be_visible()
    assert not vera.has_perm("approvals.decide_approval")

    other.goto("/people/")
    other.get_by_role("button", name="Confirm vera, Approver").click()

    expect(other.get_by_text("“vera” is Approver now.")).to_be_visible()
    assert User.objects.get(pk=vera.pk).has_perm("approvals.decide_approval")
    hers.get_by_label("Administrator").check()
    hers.get_by_role("button", name="Save roles and groups").click()
    expect(hers.get_by_text("Another administrator has to confirm: Administrator")).to_be_visible()
    other.goto("/people/")
    other.get_by_role("button", name="Deny vera, Administrator").click()
    expect(other.get_by_role("button", name="Deny vera, Administrator")).to_have_count(0)
    theirs = opened(office.alice, color_scheme="dark")
    theirs.goto(f"/queue/{office.held}/")
    expect(theirs.locator(f"#card-{office.held}")).to_contain_text("vera became Approver")
    expect(theirs.locator(f"#card-{office.held}")).to_contain_text("by ada, confirmed by eve")


def test_who_is_alone_approves_and_it_says_so(
    opened: Opened, office: Office, cleaner: Cleaner
) -> None:
    others = User.objects.exclude(pk=office.scout.owner_id)
    owner = office.scout.owner
    others.update(is_active=False)
    owner.groups.add(*Group.objects.filter(name=Role.APPROVER))
    # Past the trigger, which knows that there were others: as in a new installation.
    cleaner.connection.execute("INSERT INTO accounts_singlepersonmode (id) VALUES (1)")
    page = opened(owner, viewport={"width": 1280, "height": 1800})
    page.goto(f"/queue/{office.held}/")
    card = page.locator(f"#card-{office.held}")
    expect(card).to_contain_text("Single-person mode: you have a part in this call")

    card.get_by_role("button", name="Approve").click()

    expect(card).to_contain_text(f"Approved by {owner.username} single-person mode")
    page.goto(f"/calls/{office.held}/")
    expect(page.locator("#call-timeline")).to_contain_text("Single-person mode: nobody else")
    assert Vote.objects.get(approval=office.held).single_person


@pytest.fixture
def stage(opened: Opened, office: Office, stack: Stack, cleaner: Cleaner) -> Stage:
    pat = scenery.person("pat", Role.OPERATOR, Role.ADMINISTRATOR, Role.APPROVER)
    return Stage(office, stack, opened, cleaner, pat)


def refused(tried: Attempt) -> None:
    """On the card, and by the very form that the card does not have."""
    tried.page.goto(f"/queue/{tried.held}/")
    card = tried.page.locator(f"#card-{tried.held}")
    expect(card).to_contain_text(tried.said)
    expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    expect(card.locator("summary", has_text="Deny …")).to_have_count(0)
    for verb in ("approve", "refuse"):
        assert tried.said in sent(tried, verb)
    undecided(tried)


def no_role(tried: Attempt) -> None:
    tried.page.goto(f"/queue/{tried.held}/")
    expect(tried.page.get_by_text(tried.said).first).to_be_visible()
    tried.page.get_by_role("link", name="Go to the start page").press("Enter")
    tried.page.wait_for_url("**/overview/")
    assert tried.said in sent(tried, "approve")
    undecided(tried)


def marked(tried: Attempt) -> None:
    tried.page.set_viewport_size({"width": 1280, "height": 2400})
    tried.page.goto(f"/queue/{tried.held}/")
    card = tried.page.locator(f"#card-{tried.held}")
    expect(card).to_contain_text(tried.said)
    card.get_by_role("button", name="Approve").click()
    expect(card).to_contain_text("Approved by pat single-person mode")
    card.get_by_role("link", name=re.compile("Watch it run|The call")).first.click()
    tried.page.wait_for_url(f"**/calls/{tried.held}/")
    expect(tried.page.locator("#call-timeline")).to_contain_text("Single-person mode: nobody else")
    assert Vote.objects.get(approval=tried.held).single_person


def visible(tried: Attempt) -> None:
    tried.page.goto(f"/queue/{tried.held}/")
    card = tried.page.locator(f"#card-{tried.held}")
    expect(card).to_contain_text(tried.said)
    for fold in ("Who may decide changed", "The first call of this agent"):
        if (summary := card.locator("summary", has_text=fold)).count():
            summary.first.click()
    undecided(tried)


def undecided(tried: Attempt) -> None:
    assert not Vote.objects.filter(approval=tried.held).exists()
    assert Call.objects.get(pk=tried.held).state == State.HELD


def sent(tried: Attempt, verb: str) -> str:
    """What the browser's session is answered to the form of a card's button."""
    page = tried.page
    found = re.search(r'csrfmiddlewaretoken" value="(\w+)"', page.request.get("/profile/").text())
    assert found
    seen = Call.objects.get(pk=tried.held).call_digest
    form = {"seen": seen, "csrfmiddlewaretoken": found[1]}
    at = f"/queue/{tried.held}/{verb}/"
    return " ".join(page.request.post(at, form=form).text().replace("&#x27;", "'").split())


OUTCOMES = {"refused": refused, "no role": no_role, "marked": marked, "visible": visible}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_one_person_alone_never_asks_and_approves_unseen(stage: Stage, way: str) -> None:
    outcome, go = WAYS[way]

    tried = go(stage)

    OUTCOMES[outcome](tried)


@pytest.mark.smoke
def test_the_documents_table_has_exactly_these_ways() -> None:
    section = SECURITY.read_text().partition("## Two people\n")[2].partition("\n### ")[0]

    rows = [(row["way"], row["outcome"]) for row in ROW.finditer(section)]

    assert rows == [(way, outcome) for way, (outcome, _go) in WAYS.items()]


@pytest.mark.long
def test_a_phone_shows_several_editors_differences_one_below_the_other(stage: Stage) -> None:
    stage.another("theo", Role.APPROVER)
    held = stage.ask(stage.token_of_others())
    stage.edit(held, "Minutes of Wednesday, as all of the board agreed on them")
    stage.edit(held, "Minutes of Thursday, as nobody of the board agreed on them", stage.as_alice())
    page = stage.opened(stage.pat, viewport={"width": 360, "height": 780})

    page.goto(f"/queue/{held}/")

    row = page.locator(f"#card-{held} .changes tbody tr").first
    expect(row).to_contain_text("alice")
    boxes = [cell.bounding_box() for cell in row.locator("th, td").all()]
    assert len(boxes) == 4
    for above, below in pairwise(boxes):
        assert above
        assert below
        assert above["x"] == below["x"]
        assert above["y"] + above["height"] <= below["y"]
