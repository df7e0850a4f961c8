"""Ways by which one person could be both who asks and who approves, past the pages too.

In a browser each way is gone by tests/browser/test_two_people.py."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import independence, services, tokens
from accounts.models import Agent, AgentToken, RoleChange, User
from accounts.roles import Role
from approvals import grants, standing_approvals
from approvals.models import Grant, Vote
from approvals.standing_approvals import GrantRefused, Terms
from audit.models import Entry
from calls.models import Call, Rerun
from calls.queue.claiming import claim
from calls.record.states import State
from policies.thresholds import Threshold
from registry.models import Tool
from tests.approvals.matrix import vote_past_the_code
from tests.approvals.test_editing import change
from tests.approvals.test_grants import ASKED, subject
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


@pytest.fixture
def ada(db: None) -> User:
    """An administrator, and nobody else's inviter."""
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def pat(db: None) -> User:
    """Everything in one person: operates, administers and approves."""
    return scenery.person("pat", Role.OPERATOR, Role.ADMINISTRATOR, Role.APPROVER)


@dataclass
class Scene:
    pat: User
    client: Client
    send_mail: Tool
    bob: User

    def agent(self, name: str = "courier", owner: User | None = None) -> Agent:
        """Created by pat, on the page."""
        given = {"name": name, "owner": (owner or self.bob).pk}
        self.client.post(reverse("accounts:add_agent"), given)
        made = Agent.objects.get(name=name)
        scenery.offered(made, self.send_mail)
        return made

    def token(self, agent: Agent) -> AgentToken:
        """Issued by pat, on the page."""
        page = self.client.post(reverse("accounts:issue_token", args=[agent.name]), {"days": 1})
        assert "csa_" in page.text
        return agent.tokens.latest("pk")

    def invited(self, name: str, *roles: Role) -> Client:
        """A second account: pat makes it, follows its link, and sets its password."""
        groups = Group.objects.filter(name__in=roles).values_list("pk", flat=True)
        given = {"username": name, "groups": list(groups)}
        page = self.client.post(reverse("accounts:invite"), given)
        link = re.search(r'<code id="link"[^>]*>([^<]+)<', page.text)
        assert link
        theirs = Client()
        theirs.post("/" + link.group(1).split("/", 3)[3])
        secret = {"new_password1": scenery.PASSWORD, "new_password2": scenery.PASSWORD}
        assert theirs.post(reverse("accounts:password"), secret).status_code == 302
        return theirs

    def held(self, agent: Agent, token: AgentToken | None = None) -> UUID:
        changes = {"token_id": token.pk} if token else {}
        return scenery.call(agent, self.send_mail, scenery.MAIL, State.HELD, **changes)


@pytest.fixture
def scene(client: Client, pat: User, send_mail: Tool, bob: User) -> Scene:
    client.force_login(pat)
    return Scene(pat, client, send_mail, bob)


# Who tries, and on which call.
Way = Callable[[Scene], tuple[Client, UUID]]


def owns(scene: Scene) -> tuple[Client, UUID]:
    agent = services.create_agent("courier", owner=scene.pat, by=scene.bob)
    return scene.client, scene.held(scenery_offers(scene, agent))


def scenery_offers(scene: Scene, agent: Agent) -> Agent:
    scenery.offered(agent, scene.send_mail)
    return agent


def created(scene: Scene) -> tuple[Client, UUID]:
    return scene.client, scene.held(scene.agent())


def issued(scene: Scene) -> tuple[Client, UUID]:
    agent = Agent.objects.get(name="scout")
    return scene.client, scene.held(agent, scene.token(agent))


def rotated(scene: Scene) -> tuple[Client, UUID]:
    agent = Agent.objects.get(name="scout")
    services.issue_token(agent, by=scene.bob)
    old = agent.tokens.get()
    at = reverse("accounts:rotate_token", args=[agent.name, old.public_id])
    assert "csa_" in scene.client.post(at).text
    return scene.client, scene.held(agent, agent.tokens.latest("pk"))


def second_account(scene: Scene) -> tuple[Client, UUID]:
    return scene.invited("puppet", Role.APPROVER), scene.held(scene.agent())


def third_account(scene: Scene) -> tuple[Client, UUID]:
    """By way of another one."""
    theirs = scene.invited("puppet", Role.ADMINISTRATOR)
    further = Scene(User.objects.get(username="puppet"), theirs, scene.send_mail, scene.bob)
    return further.invited("puppets-puppet", Role.APPROVER), scene.held(scene.agent())


def confirmed_by_a_puppet(scene: Scene) -> tuple[Client, UUID]:
    theirs, held = second_account(scene)
    other = scene.invited("second-puppet", Role.ADMINISTRATOR)
    puppet = User.objects.get(username="puppet")
    for client in (scene.client, theirs, other):
        client.post(reverse("accounts:confirm", args=[puppet.pk]))
    return theirs, held


def second_account_asks(scene: Scene) -> tuple[Client, UUID]:
    theirs = scene.invited("puppet", Role.OPERATOR)
    puppet = Scene(User.objects.get(username="puppet"), theirs, scene.send_mail, scene.bob)
    return scene.client, scene.held(puppet.agent())


def edited(scene: Scene) -> tuple[Client, UUID]:
    # An edit that nobody else can approve is not taken.
    scenery.person("theo", Role.APPROVER)
    held = scene.held(Agent.objects.get(name="scout"))
    change(scene.client, held, subject="Minutes of Wednesday")
    return scene.client, held


def edited_first(scene: Scene) -> tuple[Client, UUID]:
    _client, held = edited(scene)
    carol = Client()
    carol.force_login(scenery.person("carol", Role.APPROVER))
    change(carol, held, body="Hello Ana.")
    return scene.client, held


def edited_by_the_inviter(scene: Scene) -> tuple[Client, UUID]:
    theirs = scene.invited("puppet", Role.APPROVER)
    return theirs, edited(scene)[1]


def let_the_owner_in(scene: Scene) -> tuple[Client, UUID]:
    scene.invited("puppet", Role.VIEWER)
    puppet = User.objects.get(username="puppet")
    agent = services.create_agent("courier", owner=puppet, by=scene.bob)
    return scene.client, scene.held(scenery_offers(scene, agent))


def let_the_issuer_in(scene: Scene) -> tuple[Client, UUID]:
    """Who creates agents and issues tokens in a second account, and approves in the first."""
    theirs = scene.invited("puppet", Role.OPERATOR)
    puppet = Scene(User.objects.get(username="puppet"), theirs, scene.send_mail, scene.bob)
    agent = Agent.objects.get(name="scout")
    return scene.client, scene.held(agent, puppet.token(agent))


def let_the_editor_in(scene: Scene) -> tuple[Client, UUID]:
    # An edit that nobody else can approve is not taken.
    scenery.person("theo", Role.APPROVER)
    theirs = scene.invited("puppet", Role.APPROVER)
    held = scene.held(Agent.objects.get(name="scout"))
    change(theirs, held, subject="Minutes of Wednesday")
    assert Call.objects.get(pk=held).amendment
    return scene.client, held


def asked_again(scene: Scene) -> tuple[Client, UUID]:
    agent = Agent.objects.get(name="scout")
    first = scenery.call(agent, scene.send_mail, scenery.MAIL, State.QUEUED)
    held = scene.held(agent)
    Rerun.objects.create(call_id=first, again_id=held, person=scene.pat)
    return scene.client, held


def joined_the_group(scene: Scene) -> tuple[Client, UUID]:
    """Whose word the rule asks for: that makes nobody a second person."""
    Group.objects.create(name="payments")
    _choose(scene.client, scene.pat, *scene.pat.group_names, "payments")
    agent = services.create_agent("courier", owner=scene.pat, by=scene.bob)
    scenery.offered(agent, scene.send_mail)
    asked = (Threshold(source="group:payments"),)
    held = scenery.call(agent, scene.send_mail, scenery.MAIL, State.HELD, thresholds=asked)
    assert scene.pat.groups.filter(name="payments").exists()
    return scene.client, held


def _choose(client: Client, person: User, *groups: str) -> None:
    chosen = list(Group.objects.filter(name__in=groups).values_list("pk", flat=True))
    client.post(reverse("accounts:person", args=[person.pk]), {"groups": chosen})


REFUSED: dict[str, tuple[Way, str]] = {
    "owner of the agent": (owns, "The agent is yours"),
    "creator of the agent": (created, "You created the agent"),
    "issuer of the token": (issued, "You issued the token"),
    "rotator of the token": (rotated, "You issued the token"),
    "asked for it again": (asked_again, "You requested this call again"),
    "member of the group that the rule asks": (joined_the_group, "The agent is yours"),
    "editor": (edited, "You edited the arguments"),
    "editor before the last": (edited_first, "You edited the arguments"),
    "second account, by one's own invitation": (second_account, "pat invited you"),
    "second account of a second account": (third_account, "pat invited you"),
    "second account, confirmed by another": (confirmed_by_a_puppet, "pat invited you"),
    "second account, which asks": (second_account_asks, "You invited puppet"),
    "second account of an editor": (edited_by_the_inviter, "pat invited you"),
    "owner in a second account": (let_the_owner_in, "You invited puppet"),
    "issuer in a second account": (let_the_issuer_in, "You invited puppet"),
    "editor in a second account": (let_the_editor_in, "You invited puppet"),
}


@pytest.mark.long
@pytest.mark.parametrize("way", REFUSED)
def test_nobody_approves_what_they_have_a_part_in(scene: Scene, way: str) -> None:
    arrange, said = REFUSED[way]
    client, held = arrange(scene)
    digest = Call.objects.get(pk=held).call_digest

    page = client.get(reverse("approvals:detail", args=[held])).text
    for verb in ("approve", "refuse"):
        client.post(reverse(f"approvals:{verb}", args=[held]), {"seen": digest})

    assert said in page
    assert "data-approve" not in page
    assert not Vote.objects.exists()
    assert Call.objects.get(pk=held).state == State.HELD
    # The database says the same to who goes past the pages.
    user = User.objects.get(pk=client.session["_auth_user_id"])
    assert not vote_past_the_code(held, user)


def makes_herself_approver(scene: Scene, ada: User) -> tuple[Client, User]:
    client = Client()
    client.force_login(ada)
    _choose(client, ada, Role.ADMINISTRATOR, Role.APPROVER)
    return client, ada


def makes_a_viewer_approver(scene: Scene, ada: User) -> tuple[Client, User]:
    """Somebody else's account, which she may have."""
    client, vera = Client(), scenery.person("vera", Role.VIEWER)
    client.force_login(ada)
    _choose(client, vera, Role.APPROVER)
    theirs = Client()
    theirs.force_login(vera)
    return theirs, vera


def gives_a_group_the_right(scene: Scene, ada: User) -> tuple[Client, User]:
    """In Django's admin, where she may make groups."""
    User.objects.filter(pk=ada.pk).update(is_staff=True)
    client = Client()
    client.force_login(ada)
    right = Permission.objects.get(codename="decide_approval").pk
    client.post("/admin/auth/group/add/", {"name": "mine", "permissions": [right]})
    made = Group.objects.get(name="mine")
    client.post(f"/admin/auth/group/{made.pk}/change/", {"name": "mine", "permissions": [right]})
    _choose(client, ada, Role.ADMINISTRATOR, "mine")
    assert ada.groups.filter(name="mine").exists()
    return client, ada


def gives_herself_the_right(scene: Scene, ada: User) -> tuple[Client, User]:
    User.objects.filter(pk=ada.pk).update(is_staff=True)
    client = Client()
    client.force_login(ada)
    right = Permission.objects.get(codename="decide_approval").pk
    values = {"username": "ada", "is_active": "on", "user_permissions": [right]}
    client.post(f"/admin/accounts/user/{ada.pk}/change/", values)
    return client, ada


# Of an administrator where there is another one. Whoever it makes an approver is none yet.
NO_APPROVER = {
    "gives herself the role": makes_herself_approver,
    "gives another account the role": makes_a_viewer_approver,
    "Django's admin: a right for a group": gives_a_group_the_right,
    "Django's admin: a right for herself": gives_herself_the_right,
}


@pytest.mark.long
@pytest.mark.parametrize("way", NO_APPROVER)
def test_no_administrator_alone_makes_an_approver(scene: Scene, ada: User, way: str) -> None:
    client, person = NO_APPROVER[way](scene, ada)
    held = scene.held(Agent.objects.get(name="scout"))

    assert approve(client, held) == State.HELD

    assert client.get(reverse("approvals:detail", args=[held])).status_code == 403
    assert not User.objects.get(pk=person.pk).has_perm("approvals.decide_approval")
    assert not vote_past_the_code(held, person)


def token_of_the_host(scene: Scene) -> UUID:
    call_command("issue_token", "scout", stdout=StringIO())
    scout = Agent.objects.get(name="scout")
    return scene.held(scout, scout.tokens.latest("pk"))


def agent_of_the_host(scene: Scene) -> UUID:
    call_command("issue_token", "courier", "--owner", "bob", stdout=StringIO())
    agent = Agent.objects.get(name="courier")
    scenery.offered(agent, scene.send_mail)
    return scene.held(agent, agent.tokens.get())


def call_of_the_host(scene: Scene) -> UUID:
    scout = Agent.objects.get(name="scout")
    asked = {"origin": "command"}
    return scenery.call(scout, scene.send_mail, scenery.MAIL, State.HELD, **asked)


def lone_role_giver(scene: Scene) -> UUID:
    _choose(scene.client, scenery.person("vera", Role.VIEWER), Role.APPROVER)
    return scene.held(Agent.objects.get(name="scout"))


def somebody_elses_guest(scene: Scene) -> UUID:
    scene.invited("dora", Role.APPROVER)
    return scene.held(Agent.objects.get(name="scout"))


def way_in_of_the_host(scene: Scene) -> UUID:
    dora = scenery.person("dora", Role.APPROVER)
    User.objects.filter(pk=dora.pk).update(last_login=timezone.now())
    call_command("sign_in_link", "dora", stdout=StringIO())
    return scene.held(Agent.objects.get(name="scout"))


def confirmed_by_the_host(scene: Scene) -> UUID:
    _theirs, held = second_account(scene)
    RoleChange.objects.all().delete()
    call_command("confirm_person", "puppet", stdout=StringIO())
    return held


def role_of_the_host(scene: Scene) -> UUID:
    scenery.person("eve", Role.ADMINISTRATOR)
    _choose(scene.client, scenery.person("vera", Role.VIEWER), Role.APPROVER)
    call_command("confirm_role", "vera", "Approver", stdout=StringIO())
    return scene.held(Agent.objects.get(name="scout"))


def two_second_accounts(scene: Scene) -> UUID:
    """One asks, the other one approves: one administrator may have let two people in."""
    _client, held = let_the_issuer_in(scene)
    scene.invited("other-puppet", Role.APPROVER)
    return held


def second_account_of_long_ago(scene: Scene) -> UUID:
    _theirs, held = second_account(scene)
    a_month_later()
    return held


def inviter_of_long_ago(scene: Scene) -> UUID:
    _client, held = let_the_issuer_in(scene)
    a_month_later()
    return held


def a_month_later() -> None:
    yesterday = timezone.now() - timedelta(days=1)
    User.objects.exclude(unconfirmed_until=None).update(unconfirmed_until=yesterday)
    RoleChange.objects.all().delete()


# Nothing forbids it, or nobody can know: whoever decides reads it on the card.
VISIBLE = {
    "command line: a token": (token_of_the_host, "was issued at the host's command line"),
    "command line: an agent": (agent_of_the_host, "was created at the host's command line"),
    "command line: a call": (call_of_the_host, "Asked at the host's command line"),
    "role given by the one administrator": (lone_role_giver, "<strong>vera</strong> became"),
    "second account, by another's invitation": (
        somebody_elses_guest,
        "<strong>dora</strong> became",
    ),
    "command line: a sign-in link": (
        way_in_of_the_host,
        "<strong>dora</strong>, Approver: a sign-in link or a password was created at the host",
    ),
    "command line: confirmation of an account": (
        confirmed_by_the_host,
        "<strong>puppet</strong>, Approver: confirmed as another person at the host",
    ),
    "command line: confirmation of a role": (role_of_the_host, "confirmed at the host"),
    "two second accounts": (
        two_second_accounts,
        "may be someone who has a part in this call: <strong>other-puppet</strong>",
    ),
    "second account, unconfirmed after its time": (
        second_account_of_long_ago,
        "may be someone who has a part in this call: <strong>puppet</strong>",
    ),
    "issuer in a second account, after its time": (
        inviter_of_long_ago,
        "may be someone who has a part in this call: <strong>pat</strong>",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("way", VISIBLE)
def test_what_cannot_be_refused_is_on_the_card(scene: Scene, alice: User, way: str) -> None:
    arrange, said = VISIBLE[way]
    held = arrange(scene)
    as_alice = Client()
    as_alice.force_login(alice)

    page = as_alice.get(reverse("approvals:detail", args=[held])).text

    assert said in html.unescape(" ".join(page.split()))


def test_a_password_of_the_host_is_on_the_card(
    scene: Scene, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "accounts.management.commands.changepassword.getpass"
    monkeypatch.setattr(asked, lambda _prompt: scenery.PASSWORD)

    call_command("changepassword", "alice", stdout=StringIO())

    as_alice = Client()
    assert as_alice.login(username="alice", password=scenery.PASSWORD)
    held = scene.held(Agent.objects.get(name="scout"))
    page = as_alice.get(reverse("approvals:detail", args=[held])).text
    assert "<strong>alice</strong>, Approver: a sign-in link or a password was created" in page
    assert Entry.objects.get(action="person.password_set").actor == "command line"


@pytest.mark.long
def test_an_account_is_confirmed_also_after_its_time(scene: Scene, ada: User, alice: User) -> None:
    theirs, held = second_account(scene)
    a_month_later()
    puppet = User.objects.get(username="puppet")
    puppet.groups.add(Group.objects.get(name=Role.APPROVER))
    at = reverse("accounts:confirm", args=[puppet.pk])
    as_ada = Client()
    as_ada.force_login(ada)

    for client in (scene.client, theirs):
        client.post(at)
    assert "puppet</strong>" in as_alices_card(alice, held)
    as_ada.post(at)

    assert "puppet</strong>" not in as_alices_card(alice, held)
    assert Entry.objects.get(action="person.confirmed").actor == "ada"


def as_alices_card(alice: User, held: UUID) -> str:
    client = Client()
    client.force_login(alice)
    return client.get(reverse("approvals:detail", args=[held])).text


def test_the_host_makes_no_superuser() -> None:
    with pytest.raises(CommandError, match="There are no superusers"):
        call_command("createsuperuser")


def approve(client: Client, held: UUID) -> str:
    digest = Call.objects.get(pk=held).call_digest
    client.post(reverse("approvals:approve", args=[held]), {"seen": digest})
    return Call.objects.get(pk=held).state


@pytest.mark.long
def test_another_administrator_confirms_that_there_is_a_second_person(
    scene: Scene, ada: User
) -> None:
    theirs, held = second_account(scene)
    puppet = User.objects.get(username="puppet")
    as_ada = Client()
    as_ada.force_login(ada)
    assert (
        "Not confirmed by a second person"
        in as_ada.get(reverse("accounts:person", args=[puppet.pk])).text
    )

    # With two administrators the role is given by both; that there are two people is said besides.
    role = RoleChange.objects.get(state=RoleChange.State.REQUESTED)
    as_ada.post(reverse("accounts:answer_request", args=[role.pk]), {"answer": "confirm"})
    assert approve(theirs, held) == State.HELD
    as_ada.post(reverse("accounts:confirm", args=[puppet.pk]))

    assert approve(theirs, held) == State.QUEUED
    assert claim(held, owner="here") is not None
    entry = Entry.objects.get(action="person.confirmed")
    assert (entry.actor, entry.details) == ("ada", {"person": "puppet", "invited_by": "pat"})


def test_nobody_is_confirmed_before_the_link_is_spent(scene: Scene, ada: User) -> None:
    """Whoever follows the link afterwards would be the confirmed one."""
    carol = services.create_person("carol", roles=[Role.APPROVER], by=scene.pat)

    with pytest.raises(services.AccountRefused, match="no password yet"):
        independence.confirm(carol, by=ada)


@pytest.mark.long
def test_the_host_confirms_too(scene: Scene) -> None:
    theirs, held = second_account(scene)

    call_command("confirm_person", "puppet", stdout=StringIO())

    assert approve(theirs, held) == State.QUEUED
    with pytest.raises(CommandError, match="needs no confirmation"):
        call_command("confirm_person", "puppet")


@pytest.mark.long
def test_an_account_stands_by_itself_after_its_time(scene: Scene) -> None:
    theirs, held = second_account(scene)
    puppet = User.objects.get(username="puppet")
    assert puppet.unconfirmed_until
    left = puppet.unconfirmed_until - timezone.now()
    assert timedelta(days=settings.INVITE_DAYS - 1) < left <= timedelta(days=settings.INVITE_DAYS)

    yesterday = timezone.now() - timedelta(days=1)
    User.objects.filter(pk=puppet.pk).update(unconfirmed_until=yesterday)

    assert approve(theirs, held) == State.QUEUED


@pytest.mark.long
def test_an_invited_person_decides_on_what_is_not_their_inviters(scene: Scene) -> None:
    theirs = scene.invited("dora", Role.APPROVER)

    assert approve(theirs, scene.held(Agent.objects.get(name="scout"))) == State.QUEUED


@pytest.mark.long
def test_a_vote_from_before_is_not_counted_once_its_person_has_a_part(scene: Scene) -> None:
    """At the claim, whatever happened in between."""
    held = scene.held(Agent.objects.get(name="scout"))
    assert approve(scene.client, held) == State.QUEUED
    first = scene.held(Agent.objects.get(name="scout"))

    Rerun.objects.create(call_id=first, again_id=held, person=scene.pat)

    assert claim(held, owner="here") is None
    assert Call.objects.get(pk=held).state == State.SUPERSEDED


@pytest.mark.long
def test_no_yes_in_advance_for_what_one_has_a_part_in(scene: Scene, alice: User) -> None:
    scout = Agent.objects.get(name="scout")
    held = scene.held(scout)
    assert approve(scene.client, held) == State.QUEUED
    call = Call.objects.for_page().get(pk=held)
    grant = standing_approvals.make(call, Terms(), by=scene.pat)
    token = scene.token(scout)
    bearer = tokens._bearer(token, independence.unconfirmed_inviters())
    body = bytes(call.arguments)

    book = grants.load()

    found = book.matching(subject(call), ASKED, body, frozenset({scene.bob.pk}), frozenset())
    assert found is not None
    assert found.id == grant.pk
    assert bearer.parties == {scene.bob.pk, scene.pat.pk}
    assert book.matching(subject(call), ASKED, body, bearer.parties, frozenset()) is None


@pytest.mark.long
def test_a_puppets_yes_in_advance_is_its_inviters(scene: Scene, alice: User) -> None:
    theirs = scene.invited("puppet", Role.APPROVER)
    held = scene.held(Agent.objects.get(name="scout"))
    assert approve(theirs, held) == State.QUEUED
    call = Call.objects.for_page().get(pk=held)

    standing_approvals.make(call, Terms(), by=User.objects.get(username="puppet"))

    book, body = grants.load(), bytes(call.arguments)
    assert book.matching(subject(call), ASKED, body, frozenset({scene.bob.pk}), frozenset())
    assert not book.matching(subject(call), ASKED, body, frozenset({scene.pat.pk}), frozenset())


@pytest.mark.long
def test_no_yes_in_advance_for_what_a_second_account_asks(scene: Scene, alice: User) -> None:
    scout = Agent.objects.get(name="scout")
    held = scene.held(scout)
    assert approve(scene.client, held) == State.QUEUED
    call = Call.objects.for_page().get(pk=held)
    standing_approvals.make(call, Terms(), by=scene.pat)
    theirs = scene.invited("puppet", Role.OPERATOR)
    puppet = Scene(User.objects.get(username="puppet"), theirs, scene.send_mail, scene.bob)

    text = services.issue_token(scout, by=puppet.pat)

    bearer = tokens.look_up(text)
    assert bearer is not None
    assert bearer.parties == {scene.bob.pk, puppet.pat.pk}
    assert bearer.inviters == {scene.pat.pk}
    book, body = grants.load(), bytes(call.arguments)
    assert book.matching(subject(call), ASKED, body, bearer.parties, frozenset())
    assert not book.matching(subject(call), ASKED, body, bearer.parties, bearer.inviters)


@pytest.mark.long
def test_no_grant_grows_out_of_a_call_of_ones_own(scene: Scene, alice: User) -> None:
    agent = scene.agent()
    call = Call.objects.for_page().get(pk=scene.held(agent))

    with pytest.raises(GrantRefused):
        standing_approvals.make(call, Terms(), by=scene.pat)
    assert not Grant.objects.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_agent SET created_by_id = NULL",
        "UPDATE accounts_agenttoken SET created_by_id = NULL",
    ],
)
def test_who_created_an_agent_or_issued_a_token_stays_written(scene: Scene, statement: str) -> None:
    scene.token(scene.agent())

    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        connection.cursor().execute(statement)


@pytest.mark.long
def test_each_difference_names_who_made_it(scene: Scene, alice: User) -> None:
    _client, held = edited_first(scene)
    as_alice = Client()
    as_alice.force_login(alice)

    page = as_alice.get(reverse("approvals:detail", args=[held])).text

    rows = re.findall(
        r'<tr><th scope="row" class="mono">(.*?)</th>.*?>([^<]*)</td></tr>', page, re.S
    )
    assert rows == [("subject", "pat"), ("body", "carol")]
    assert "<strong>pat</strong> edited the arguments" in page
    assert "<strong>carol</strong> edited the arguments" in page
    assert approve(as_alice, held) == State.QUEUED
