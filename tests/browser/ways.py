"""Every way by which one person could be both who asks and who approves, as that person goes it.

pat does all of it: operates, administers and approves. What others do beforehand is done by the
product's verbs. Calls are asked for at the agents' own doors, MCP and REST.
"""

import asyncio
import json
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from io import StringIO
from uuid import UUID

import aiohttp
import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts import services
from accounts.models import Agent, RoleChange, User
from accounts.roles import Role
from audit.services import SYSTEM
from calls.models import Call
from policies.models import Rule
from policies.services import save_rule
from policies.thresholds import Threshold
from tests.browser.conftest import Opened
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.console import scenery
from tests.database import Cleaner
from tests.gateway.agent import TASKS
from tests.gateway.agent import Agent as Client
from tests.processes import Stack

MAIL = "mailer.send_mail"
UNCONFIRMED = "Not confirmed by a second person, and may be someone who has a part in this call"


@dataclass(frozen=True)
class Attempt:
    """`page` is the window in which it is tried, or looked at; `said`, what stands there."""

    page: Page
    held: UUID
    said: str


@dataclass
class Stage:
    office: Office
    stack: Stack
    opened: Opened
    cleaner: Cleaner
    pat: User
    asked: int = 0
    page: Page = field(init=False)

    def __post_init__(self) -> None:
        self.page = self.opened(self.pat)

    @property
    def scout(self) -> Agent:
        return self.office.scout

    # -- At the agents' doors ----------------------------------------------------------------------

    def ask(self, token: str) -> UUID:
        """By MCP, as a client that takes tasks: it is told at once that it has to wait."""
        assert self.stack.agents
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._ask(token, self._mail())).result()

    async def _ask(self, token: str, mail: dict[str, object]) -> UUID:
        url = f"{self.stack.agents_url}/mcp/{scenery.TOOLSET}"
        async with aiohttp.ClientSession() as http:
            client = Client(http, url, token, capabilities=TASKS)
            reply = await client.call(MAIL, mail)
        return UUID(reply.result["_meta"]["countersign/call"])

    def ask_by_rest(self, token: str) -> UUID:
        body = {"toolset": scenery.TOOLSET, "tool": MAIL, "arguments": self._mail()}
        request = urllib.request.Request(
            f"{self.stack.web_url}/api/calls?wait=0",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as reply:
            return UUID(json.load(reply)["id"])

    def _mail(self) -> dict[str, object]:
        self.asked += 1
        return {**scenery.MAIL, "subject": f"Minutes, part {self.asked}"}

    def token_of_others(self, agent: Agent | None = None) -> str:
        return services.issue_token(agent or self.scout, by=self.office.bob)

    # -- In the console ----------------------------------------------------------------------------

    def agent(self, name: str, owner: str, page: Page | None = None) -> Agent:
        page = page or self.page
        page.goto("/new/agent/")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Owner").select_option(label=owner)
        page.get_by_role("button", name="Create agent").click()
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        made = Agent.objects.get(name=name)
        scenery.offered(made, self.office.send)
        return made

    def token(self, agent: Agent, page: Page | None = None) -> str:
        page = page or self.page
        page.goto(f"/agents/{agent.name}/")
        page.get_by_role("button", name="Create token").click()
        return page.locator("#token").inner_text()

    def invited(self, name: str, *roles: Role, page: Page | None = None) -> Page:
        """Another account: its link is followed by whoever made it, who sets its password."""
        page = page or self.page
        page.goto("/new/person/")
        page.get_by_label("Username", exact=True).fill(name)
        for role in roles:
            page.get_by_label(role, exact=True).check()
        page.get_by_role("button", name="Create link").click()
        page.locator("summary", has_text="Rename").click()
        return self.followed(page.locator("#link").inner_text())

    def followed(self, link: str) -> Page:
        theirs = self.opened()
        theirs.goto("/" + link.split("/", 3)[3])
        theirs.get_by_role("button", name="Sign in").click()
        theirs.goto("/profile/")
        theirs.get_by_label("New password", exact=True).fill(scenery.PASSWORD)
        theirs.get_by_label("New password again").fill(scenery.PASSWORD)
        theirs.get_by_label("New password again").press("Enter")
        expect(theirs.get_by_text("Your password is set.")).to_be_visible()
        return theirs

    def edit(self, held: UUID, to: str, page: Page | None = None) -> None:
        page = page or self.page
        page.goto(f"/queue/{held}/")
        page.locator(f"#card-{held}").get_by_role("link", name="Suggest changes").click()
        page.get_by_role("textbox", name="subject").fill(to)
        page.get_by_role("button", name="Suggest these arguments").click()
        expect(page.get_by_text("Your change is proposed.")).to_be_visible()

    def give(self, person: User, *roles: str, page: Page | None = None) -> Page:
        page = page or self.page
        page.goto(f"/people/{person.pk}/")
        for role in roles:
            page.get_by_label(role, exact=True).check()
        page.get_by_role("button", name="Save roles and groups").click()
        return page

    def another(self, name: str, *roles: Role) -> User:
        """Somebody else, whom pat did not let in."""
        return scenery.person(name, *roles)

    def as_alice(self) -> Page:
        return self.opened(self.office.alice)


Way = Callable[[Stage], Attempt]


# -- Who has a part in the call --------------------------------------------------------------------


def owns(on: Stage) -> Attempt:
    agent = services.create_agent("courier", owner=on.pat, by=on.office.bob)
    scenery.offered(agent, on.office.send)
    return Attempt(on.page, on.ask(on.token_of_others(agent)), "The agent is yours")


def creates(on: Stage) -> Attempt:
    agent = on.agent("courier", "bob")
    return Attempt(on.page, on.ask(on.token_of_others(agent)), "You created the agent")


def issues(on: Stage) -> Attempt:
    return Attempt(on.page, on.ask_by_rest(on.token(on.scout)), "You issued the token")


def rotates(on: Stage) -> Attempt:
    on.token_of_others()
    on.page.goto("/agents/scout/")
    on.page.get_by_role("button", name="Rotate").first.click()
    token = on.page.locator("#token").inner_text()
    return Attempt(on.page, on.ask(token), "You issued the token")


def tries(on: Stage) -> Attempt:
    agent = services.create_agent("courier", owner=on.pat, by=on.office.bob)
    scenery.offered(agent, on.office.send)
    on.page.goto(f"/tools/{MAIL}/try/")
    on.page.get_by_role("button", name="Edit as JSON").click()
    on.page.get_by_label("Arguments as JSON").fill(json.dumps(on._mail()))
    on.page.get_by_role("button", name="Call the tool").click()
    expect(on.page.locator("#outcome")).to_be_visible()
    held = Call.objects.get(agent=agent).pk
    return Attempt(on.page, held, "The agent is yours")


def asks_again(on: Stage) -> Attempt:
    on.page.goto(f"/calls/{on.office.lost}/")
    on.page.get_by_role("button", name="Run again as a new call").click()
    expect(on.page.get_by_text("It was asked for again")).to_be_visible()
    held = Call.objects.exclude(pk=on.office.lost).latest("asked_at").pk
    return Attempt(on.page, held, "You requested this call again")


def edits(on: Stage) -> Attempt:
    held = on.ask(on.token_of_others())
    on.edit(held, "Minutes of Wednesday")
    return Attempt(on.page, held, "You edited the arguments")


def edits_before_another(on: Stage) -> Attempt:
    # An edit that nobody else can approve is not taken.
    on.another("theo", Role.APPROVER)
    held = on.ask(on.token_of_others())
    on.edit(held, "Minutes of Wednesday")
    on.edit(held, "Minutes of Thursday", on.as_alice())
    return Attempt(on.page, held, "You edited the arguments")


def grants(on: Stage) -> Attempt:
    first = on.ask(on.token_of_others())
    on.page.set_viewport_size({"width": 1280, "height": 2400})
    on.page.goto(f"/queue/{first}/")
    on.page.get_by_role("button", name="Approve").click()
    on.page.get_by_role("link", name="Create a standing approval").click()
    subject = on.page.get_by_role("group", name="subject")
    choose(subject.get_by_role("combobox"), "prefix")
    subject.get_by_label("It begins with").fill("Minutes")
    on.page.get_by_role("button", name="What would it have covered?").click()
    on.page.get_by_role("button", name="Create standing approval").click()
    expect(on.page.get_by_text("is active")).to_be_visible()
    return Attempt(on.page, on.ask(on.token(on.scout)), "You issued the token")


# -- A second account ------------------------------------------------------------------------------


def invites_an_approver(on: Stage) -> Attempt:
    held = on.ask(on.token(on.scout))
    return Attempt(on.invited("puppet", Role.APPROVER), held, "pat invited you")


def invites_by_way_of_another(on: Stage) -> Attempt:
    held = on.ask(on.token(on.scout))
    between = on.invited("puppet", Role.ADMINISTRATOR)
    theirs = on.invited("second-puppet", Role.APPROVER, page=between)
    return Attempt(theirs, held, "pat invited you")


def has_it_confirmed_by_another(on: Stage) -> Attempt:
    held = on.ask(on.token(on.scout))
    theirs = on.invited("puppet", Role.APPROVER)
    other = on.invited("second-puppet", Role.ADMINISTRATOR)
    for window in (on.page, other):
        window.goto(f"/people/{_person('puppet').pk}/")
        said = "must be confirmed by someone other than the person who invited it."
        expect(window.get_by_text(said)).to_be_visible()
        expect(window.get_by_role("button", name="Confirm that this")).to_have_count(0)
    return Attempt(theirs, held, "pat invited you")


def follows_a_link_of_anothers_guest(on: Stage) -> Attempt:
    held = on.ask(on.token(on.scout))
    carol = services.create_person("carol", roles=[], by=on.office.alice)
    carol.groups.add(Group.objects.get(name=Role.APPROVER))
    on.page.goto(f"/people/{carol.pk}/")
    on.page.get_by_role("button", name="New sign-in link").click()
    theirs = on.followed(on.page.locator("#link").inner_text())
    return Attempt(theirs, held, "pat invited you")


def asks_in_the_second(on: Stage) -> Attempt:
    theirs = on.invited("puppet", Role.OPERATOR)
    agent = on.agent("courier", "bob", page=theirs)
    held = on.ask(on.token(agent, page=theirs))
    return Attempt(on.page, held, "You invited puppet")


def edits_in_the_second(on: Stage) -> Attempt:
    held = on.ask(on.token_of_others())
    on.edit(held, "Minutes of Wednesday", on.invited("puppet", Role.APPROVER))
    return Attempt(on.page, held, "You invited puppet")


def asks_and_approves_in_two_others(on: Stage) -> Attempt:
    asking = on.invited("puppet", Role.OPERATOR)
    held = on.ask(on.token(on.scout, page=asking))
    on.invited("second-puppet", Role.APPROVER)
    return Attempt(on.as_alice(), held, f"{UNCONFIRMED}: second-puppet")


def waits_a_month(on: Stage) -> Attempt:
    held = on.ask(on.token(on.scout))
    on.invited("puppet", Role.APPROVER)
    _a_month_later()
    return Attempt(on.as_alice(), held, f"{UNCONFIRMED}: puppet")


def waits_a_month_and_asks(on: Stage) -> Attempt:
    theirs = on.invited("puppet", Role.OPERATOR)
    held = on.ask(on.token(on.scout, page=theirs))
    _a_month_later()
    return Attempt(on.as_alice(), held, f"{UNCONFIRMED}: pat")


# -- Whom the rule asks, and who says who decides --------------------------------------------------


def joins_the_group(on: Stage) -> Attempt:
    group = Group.objects.create(name="payments")
    group.user_set.add(on.another("carol", Role.APPROVER))
    _mails_are_asked_of("group:payments")
    held = on.ask(on.token(on.scout))
    on.give(on.pat, "payments")
    expect(on.page.get_by_text("Roles and groups of “pat” are as chosen.")).to_be_visible()
    return Attempt(on.page, held, "You issued the token")


def takes_the_name(on: Stage) -> Attempt:
    carol = on.another("carol", Role.APPROVER)
    _mails_are_asked_of("person:carol")
    services.rename(carol, "caroline", by=on.office.alice)
    held = on.ask(on.token_of_others())
    on.page.goto(f"/people/{on.pat.pk}/")
    on.page.get_by_text("Rename", exact=True).click()
    on.page.get_by_label("Username", exact=True).fill("carol")
    on.page.get_by_role("button", name="Save the name").click()
    expect(on.page.get_by_text("“carol” is or was another user's name")).to_be_visible()
    return Attempt(on.page, held, "The rule asks other people: carol")


def makes_herself_approver(on: Stage) -> Attempt:
    ada, _eve = (on.another(name, Role.ADMINISTRATOR) for name in ("ada", "eve"))
    page = on.opened(ada, will_complain_of=("403",))
    on.give(ada, Role.APPROVER, page=page)
    said = "Another administrator has to confirm: Approver"
    expect(page.get_by_text(said)).to_be_visible()
    return Attempt(page, on.ask(on.token_of_others()), "Access denied")


def makes_her_other_account_approver(on: Stage) -> Attempt:
    ada, _eve = (on.another(name, Role.ADMINISTRATOR) for name in ("ada", "eve"))
    vera = on.another("vera", Role.VIEWER)
    page = on.give(vera, Role.APPROVER, page=on.opened(ada))
    expect(page.get_by_text("Another administrator has to confirm: Approver")).to_be_visible()
    theirs = on.opened(vera, will_complain_of=("403",))
    return Attempt(theirs, on.ask(on.token_of_others()), "Access denied")


def removes_the_other_administrator(on: Stage) -> Attempt:
    ada, eve = (on.another(name, Role.ADMINISTRATOR) for name in ("ada", "eve"))
    on.pat.groups.remove(Group.objects.get(name=Role.ADMINISTRATOR))
    page = on.opened(ada, will_complain_of=("403",))
    page.goto(f"/people/{eve.pk}/")
    page.get_by_role("link", name="Disable").click()
    page.get_by_role("button", name="Disable the user").click()
    expect(page.get_by_text("“eve” is off and signed out everywhere.")).to_be_visible()
    on.give(ada, Role.APPROVER, page=page)
    expect(page.get_by_text("Another administrator has to confirm: Approver")).to_be_visible()
    return Attempt(page, on.ask(on.token_of_others()), "Access denied")


def goes_by_djangos_admin(on: Stage) -> Attempt:
    """It shows people and permissions, and takes none; a group that it makes may do nothing."""
    ada, _eve = (on.another(name, Role.ADMINISTRATOR) for name in ("ada", "eve"))
    User.objects.filter(pk=ada.pk).update(is_staff=True)
    page = on.opened(ada, will_complain_of=("403",))
    page.goto(f"/admin/accounts/user/{ada.pk}/change/")
    expect(
        page.locator("#content-main input:not([type=hidden]), #content-main select")
    ).to_have_count(0)
    page.goto("/admin/auth/group/add/")
    expect(page.locator("#content-main select")).to_have_count(0)
    page.get_by_label("Name").fill("mine")
    page.get_by_role("button", name="Save", exact=True).click()
    on.give(ada, "mine", page=page)
    expect(page.get_by_text("Roles and groups of “ada” are as chosen.")).to_be_visible()
    return Attempt(page, on.ask(on.token_of_others()), "Access denied")


def only_administrator_gives_the_role(on: Stage) -> Attempt:
    vera = on.another("vera", Role.VIEWER)
    on.give(vera, Role.APPROVER)
    expect(on.page.get_by_text("Roles and groups of “vera” are as chosen.")).to_be_visible()
    return Attempt(on.as_alice(), on.ask(on.token_of_others()), "vera became Approver")


def invites_for_anothers_call(on: Stage) -> Attempt:
    on.invited("dora", Role.APPROVER)
    return Attempt(on.as_alice(), on.ask(on.token_of_others()), "dora became Approver")


# -- Alone -----------------------------------------------------------------------------------------


def is_alone(on: Stage) -> Attempt:
    _leave_alone(on)
    # Past the trigger, which knows that there were others: as in a new installation.
    on.cleaner.connection.execute("INSERT INTO accounts_singlepersonmode (id) VALUES (1)")
    return Attempt(on.page, on.ask(on.token(on.scout)), "Single-person mode: you have a part")


def leaves_herself_alone(on: Stage) -> Attempt:
    held = on.ask(on.token(on.scout))
    on.page.goto(f"/people/{on.office.alice.pk}/")
    on.page.get_by_role("link", name="Disable").click()
    on.page.get_by_role("button", name="Disable the user").click()
    expect(on.page.get_by_text("“alice” is off and signed out everywhere.")).to_be_visible()
    return Attempt(on.page, held, "You issued the token")


# -- At the host's command line --------------------------------------------------------------------


def creates_at_the_host(on: Stage) -> Attempt:
    token = _command("issue_token", "courier", "--owner", "bob")
    scenery.offered(Agent.objects.get(name="courier"), on.office.send)
    said = "The agent was created at the host's command line"
    return Attempt(on.as_alice(), on.ask(token), said)


def issues_at_the_host(on: Stage) -> Attempt:
    said = "was issued at the host's command line"
    return Attempt(on.as_alice(), on.ask(_command("issue_token", "scout")), said)


def asks_at_the_host(on: Stage) -> Attempt:
    mail = json.dumps(on._mail())
    with pytest.raises(SystemExit, match="4"):
        # It waits for a person.
        _command("call", "scout", scenery.TOOLSET, MAIL, mail, "--wait", "0")
    held = Call.objects.latest("asked_at").pk
    return Attempt(on.as_alice(), held, "Asked at the host's command line, without a token.")


def comes_in_as_another(on: Stage) -> Attempt:
    carol = on.another("carol", Role.APPROVER)
    carol.set_password(scenery.PASSWORD)
    carol.save()
    on.opened().goto("/" + _command("sign_in_link", "carol").split("/", 3)[3])
    held = on.ask(on.token(on.scout))
    said = "carol, Approver: a sign-in link or a password was created at the host's command line"
    return Attempt(on.as_alice(), held, said)


def confirms_her_account_at_the_host(on: Stage) -> Attempt:
    held = on.ask(on.token(on.scout))
    on.invited("puppet", Role.APPROVER)
    _command("confirm_person", "puppet")
    said = "puppet, Approver: confirmed as another person at the host's command line"
    return Attempt(on.as_alice(), held, said)


def confirms_her_role_at_the_host(on: Stage) -> Attempt:
    ada, _eve = (on.another(name, Role.ADMINISTRATOR) for name in ("ada", "eve"))
    on.give(ada, Role.APPROVER, page=on.opened(ada))
    _command("confirm_role", "ada", Role.APPROVER)
    held = on.ask(on.token_of_others())
    return Attempt(on.as_alice(), held, "by ada, confirmed at the host's command line")


def _command(name: str, *arguments: str) -> str:
    output = StringIO()
    call_command(name, *arguments, stdout=output)
    return output.getvalue().strip()


def _mails_are_asked_of(source: str) -> None:
    Rule.objects.all().delete()
    rule = Rule(name=f"Mails: {source}", effect="ask", server="mailer")
    rule.thresholds = [Threshold(source=source).plain()]
    save_rule(rule, by=SYSTEM)


def _leave_alone(on: Stage) -> None:
    User.objects.exclude(pk__in=(on.pat.pk, on.office.bob.pk)).update(is_active=False)


def _a_month_later() -> None:
    yesterday = timezone.now() - timedelta(days=1)
    User.objects.exclude(unconfirmed_until=None).update(unconfirmed_until=yesterday)
    RoleChange.objects.all().delete()


def _person(name: str) -> User:
    return User.objects.get(username=name)


# By the first column of docs/en/concepts/security-model.md, "Two people".
WAYS: dict[str, tuple[str, Way]] = {
    "owns the agent, now or when it asked": ("refused", owns),
    "created the agent, whether or not they own it": ("refused", creates),
    "issued the token that the call came with": ("refused", issues),
    "rotated to that token": ("refused", rotates),
    "tries the tool in the console, as their agent": ("refused", tries),
    "asks again for a call of unknown outcome": ("refused", asks_again),
    "edited the arguments last": ("refused", edits),
    "edited them before another person did": ("refused", edits_before_another),
    "made a standing approval beforehand that would answer for the call": ("refused", grants),
    "invites a second account, which approves": ("refused", invites_an_approver),
    "lets a second account invite a third": ("refused", invites_by_way_of_another),
    "has the second account confirmed by a third": ("refused", has_it_confirmed_by_another),
    "makes a sign-in link for an account that another person invited": (
        "refused",
        follows_a_link_of_anothers_guest,
    ),
    "asks in the second account, approves in the first": ("refused", asks_in_the_second),
    "edits in the second account, approves in the first": ("refused", edits_in_the_second),
    "asks in one second account, approves in another": ("visible", asks_and_approves_in_two_others),
    "approves in the second account after 30 days": ("visible", waits_a_month),
    "asks in the second account, approves after 30 days": ("visible", waits_a_month_and_asks),
    "joins the group that the rule asks": ("refused", joins_the_group),
    "takes the name that the rule asks": ("refused", takes_the_name),
    "administers, and gives herself the role": ("no role", makes_herself_approver),
    "administers, and gives it to another account": ("no role", makes_her_other_account_approver),
    "disables the other administrator first": ("no role", removes_the_other_administrator),
    "goes by Django's admin": ("no role", goes_by_djangos_admin),
    "is the only administrator, and gives the role": (
        "visible",
        only_administrator_gives_the_role,
    ),
    "invites an approver for other people's calls": ("visible", invites_for_anothers_call),
    "is alone in a new installation": ("marked", is_alone),
    "disables all others who decide": ("refused", leaves_herself_alone),
    "creates the agent at the command line": ("visible", creates_at_the_host),
    "issues the token at the command line": ("visible", issues_at_the_host),
    "asks at the command line": ("visible", asks_at_the_host),
    "makes a way into another person's account at the command line": (
        "visible",
        comes_in_as_another,
    ),
    "confirms the second account at the command line": (
        "visible",
        confirms_her_account_at_the_host,
    ),
    "confirms the role at the command line": ("visible", confirms_her_role_at_the_host),
}
