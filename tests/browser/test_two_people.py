"""One person as both who asks and who approves, in a real browser: refused, marked, or seen."""

from django.contrib.auth.models import Group
from playwright.sync_api import expect

from accounts.models import Agent, User
from accounts.roles import Role
from approvals.models import Vote
from calls.models import Call
from calls.record.states import State
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.console import scenery
from tests.database import Cleaner


def test_who_created_the_agent_finds_no_button(opened: Opened, office: Office) -> None:
    pat = scenery.person("pat", Role.OPERATOR, Role.APPROVER)
    page = opened(pat)
    page.goto("/new/agent/")
    page.get_by_label("Name").fill("courier")
    page.get_by_label("Owner").select_option(label="bob")
    page.get_by_role("button", name="Make the agent").click()
    page.get_by_role("button", name="Issue a token").click()
    expect(page.locator("#token")).to_contain_text("csa_")
    agent = Agent.objects.get(name="courier")
    scenery.offered(agent, office.send)
    token = agent.tokens.get().pk
    held = scenery.call(agent, office.send, scenery.MAIL, State.HELD, token_id=token)

    page.goto(f"/queue/{held}/")

    card = page.locator(f"#card-{held}")
    expect(card).to_contain_text("You created the agent: somebody else has to decide.")
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
    hers.get_by_role("button", name="Save the groups").click()
    expect(hers.get_by_text("Another administrator has to confirm: Approver")).to_be_visible()
    assert not vera.has_perm("approvals.decide_approval")

    other.goto("/people/")
    other.get_by_role("button", name="Confirm vera, Approver").click()

    expect(other.get_by_text("“vera” is Approver now.")).to_be_visible()
    assert User.objects.get(pk=vera.pk).has_perm("approvals.decide_approval")
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
