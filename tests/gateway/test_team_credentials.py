"""Calls that carry the credential of a team, or of their agent, to a server; and attacks on it."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from accounts import custom_roles
from accounts import services as accounts
from accounts.actors import AccountRefused
from accounts.custom_roles import RoleTerms
from accounts.models import Agent as AgentRow
from accounts.models import User
from accounts.roles import Role
from approvals.services import AlreadyDecided
from audit.models import Entry
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.credentials import credential_store
from registry.discovery import discovery
from registry.models import CredentialOwner, Server, ServerCredential, Toolset
from registry.tasks import remove_credentials
from tests.conftest import person
from tests.gateway.agent import Agent
from tests.gateway.conftest import AddRule, Play, decide, the_call, until
from tests.signing_in import connect_owned, set_up
from tests.upstreams.guarded import Guarded

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


@pytest.fixture(scope="module")
def running_guarded() -> Iterator[Guarded]:
    with Guarded() as guarded:
        yield guarded


@pytest.fixture
def support(bob: User) -> Group:
    """A team that bob is in; he is a Viewer too, which is a role."""
    made = Group.objects.create(name="support")
    bob.groups.add(made)
    return made


@pytest.fixture
def sales() -> Group:
    return Group.objects.create(name="sales")


@pytest.fixture
def olga(db: None) -> User:
    return person("olga", Role.OPERATOR)


@pytest.fixture
def acme(
    running_guarded: Guarded, toolset: Toolset, bob: User, olga: User, support: Group
) -> Guarded:
    """A server of the toolset that is called with each team's account; support has one."""
    running_guarded.reset()
    server = services.register(
        "acme", transport="http", url=running_guarded.url, owner=bob, by=bob, publish=True
    )
    services.add_server(toolset, server, by=bob)
    set_up(server, Server.SignIn.TEAM, by=olga)
    connect_owned(olga, "acme", support.pk, login="robot-of-support")
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary
    running_guarded.callers.clear()
    return running_guarded


def user(name: str) -> User:
    return User.objects.get(username=name)


def an_agent_of(name: str, toolset: Toolset, *teams: Group) -> str:
    """The token of an agent `rover` of a new person, who is in these teams."""
    owner = person(name, Role.VIEWER)
    owner.groups.add(*teams)
    made = accounts.create_agent("rover", owner=owner, by=owner)
    services.assign(toolset, made, by=owner)
    return accounts.issue_token(made, by=owner)


async def test_agents_of_the_team_carry_its_account_and_the_record_says_so(
    play: Play, acme: Guarded, toolset: Toolset, support: Group
) -> None:
    token = await sync_to_async(an_agent_of)("dora", toolset, support)

    replies = [await play().call("acme.echo", {"text": "hello"})]
    replies += [await play(token=token).call("acme.echo", {"text": "hello"})]

    assert [reply.text for reply in replies] == ["hello", "hello"]
    assert acme.callers == [("robot-of-support", "echo")] * 2
    row = await ServerCredential.objects.aget()
    for reply in replies:
        first = await Entry.objects.aget(call_id=reply.call_id, seq=1)
        last = await Entry.objects.aget(call_id=reply.call_id, action="call.succeeded")
        said = {"owner": "team:support", "issuer": acme.issuer, "id": row.pk, "generation": 1}
        assert first.details["credential"] == last.details["credential"] == said


async def test_an_agent_of_another_team_does_not_carry_it(
    play: Play, acme: Guarded, toolset: Toolset, sales: Group
) -> None:
    token = await sync_to_async(an_agent_of)("dora", toolset, sales)

    reply = await play(token=token).call("acme.echo", {"text": "hello"})

    assert "An operator has to connect the team “sales” at “acme” first" in reply.text
    assert "/servers/acme/sign-in/" in reply.text
    assert acme.callers == []


async def test_an_agent_of_no_team_does_not_carry_it(
    play: Play, acme: Guarded, toolset: Toolset
) -> None:
    token = await sync_to_async(an_agent_of)("dora", toolset)

    reply = await play(token=token).call("acme.echo", {"text": "hello"})

    assert "the agent acts for none" in reply.text
    assert acme.callers == []


async def test_of_two_teams_none_is_guessed_and_the_chosen_one_is_used(
    play: Play, acme: Guarded, bob: User, sales: Group, olga: User, support: Group
) -> None:
    await bob.groups.aadd(sales)
    await sync_to_async(connect_owned)(olga, "acme", sales.pk, login="robot-of-sales")
    await _until_none(play())

    await sync_to_async(_choose)("bob", "sales")

    assert (await play().call("acme.echo", {"text": "one"})).text == "one"
    assert acme.callers == [("robot-of-sales", "echo")]
    await bob.groups.aremove(sales)
    # Not support's instead, which nobody chose.
    await _until_none(play())
    assert acme.callers == [("robot-of-sales", "echo")]
    entry = await Entry.objects.aget(action="agent.team_set")
    assert (entry.actor, entry.agent, entry.details["team"]) == ("bob", "scout", "sales")


async def _until_none(agent: Agent) -> None:
    """Until its processes know what was changed in the database."""

    async def is_none() -> bool:
        reply = await agent.call("acme.echo", {"text": "none"}, allow_duplicate=True)
        return "the agent acts for none" in reply.text

    await until(is_none)


def _choose(name: str, team: str) -> int:
    client = Client()
    client.force_login(user(name))
    return client.post("/agents/scout/team/", {"team": team}).status_code


async def test_who_left_the_team_carries_nothing_of_it(
    play: Play, acme: Guarded, bob: User, support: Group
) -> None:
    assert (await play().call("acme.echo", {"text": "hello"})).text == "hello"

    await bob.groups.aremove(support)

    await _until_none(play())
    assert len(acme.callers) == 1


async def test_a_call_that_was_approved_for_one_team_is_not_sent_for_another(
    play: Play,
    acme: Guarded,
    rule: AddRule,
    bob: User,
    alice: User,
    olga: User,
    support: Group,
    sales: Group,
) -> None:
    """bob changes from support to sales while a person decides: nobody approved sales' account."""
    await rule(Effect.ASK, "echo")
    await sync_to_async(connect_owned)(olga, "acme", sales.pk, login="robot-of-sales")
    call_id = (await play().call("acme.echo", {"text": "hello"})).call_id
    page = await sync_to_async(_page)(f"/queue/{call_id}/", alice)
    assert "Credential at acme: The team support's" in page.replace("&#x27;", "'")

    await bob.groups.aremove(support)
    await bob.groups.aadd(sales)
    with pytest.raises(AlreadyDecided, match="other now: the server's credential"):
        await decide(alice)

    assert (await the_call(call_id)).state == State.SUPERSEDED
    assert acme.callers == []


def _page(path: str, who: User) -> str:
    client = Client()
    client.force_login(who)
    return client.get(path).text


async def test_rules_know_the_team_and_no_users_name_is_taken_for_it(
    agent: Agent, acme: Guarded, rule: AddRule, toolset: Toolset
) -> None:
    await rule(Effect.DENY, "*", when="credential.owner == 'support'")
    assert (await agent.call("acme.echo", {"text": "hello"})).text == "hello"

    await rule(Effect.DENY, "*", when="credential.owner == 'team:support'", name="team")

    assert (await agent.call("acme.echo", {"text": "again"})).result["isError"] is True


@pytest.mark.parametrize("gone", ["retired", "deleted"])
def test_the_credential_of_a_team_that_is_gone_opens_nothing_and_is_revoked(
    acme: Guarded, olga: User, bob: User, gone: str
) -> None:
    ada = person("ada", Role.ADMINISTRATOR)
    if gone == "retired":
        terms = RoleTerms(frozenset({"registry.view_server"}))
        role = custom_roles.create("desk", description="", terms=terms, by=ada)
        team = role.group
    else:
        team = Group.objects.create(name="desk")
    connect_owned(olga, "acme", team.pk, login="robot-of-desk")
    theirs = {token for token, one in acme.access.items() if one.login == "robot-of-desk"}
    owner, server = CredentialOwner("team", team.pk, "desk"), Server.objects.get(slug="acme")
    assert credential_store.current(server.pk, owner)

    if gone == "retired":
        custom_roles.retire(role, by=ada)
    else:
        team.delete()

    with pytest.raises(credential_store.CredentialMissing):
        credential_store.current(server.pk, owner)
    # Another group of that name has another number.
    if gone == "deleted":
        again = Group.objects.create(name="desk")
        with pytest.raises(credential_store.CredentialMissing):
            credential_store.current(server.pk, CredentialOwner("team", again.pk, "desk"))
    remove_credentials()
    assert not ServerCredential.objects.filter(team_id=owner.pk).exists()
    assert ServerCredential.objects.count() == 1
    assert theirs <= set(acme.revoked)


def test_a_credential_put_into_another_teams_row_opens_nothing(
    acme: Guarded, olga: User, sales: Group, support: Group
) -> None:
    connect_owned(olga, "acme", sales.pk, login="robot-of-sales")
    of_support = ServerCredential.objects.get(team=support)
    ServerCredential.objects.filter(team=sales).update(sealed=of_support.sealed)

    with pytest.raises(credential_store.CredentialMissing):
        credential_store.current(of_support.server_id, CredentialOwner("team", sales.pk, "sales"))


def test_only_operators_connect_teams_and_only_to_what_is_one(
    acme: Guarded, olga: User, bob: User, support: Group
) -> None:
    before = list(ServerCredential.objects.values_list("pk", flat=True))
    client = Client()
    client.force_login(bob)
    place = "/servers/acme/sign-in"
    assert client.post(f"{place}/connect/", {"owner": support.pk}).status_code == 403
    assert client.post(f"{place}/disconnect/", {"credential": before[0]}).status_code == 403
    assert client.post("/connections/acme/connect/").status_code == 404
    client.force_login(olga)
    role = Group.objects.get(name=Role.VIEWER)
    for owner in ("", "0", "-1", "x", str(role.pk), "99999"):
        answer = client.post(f"{place}/connect/", {"owner": owner})
        assert answer.status_code == 422

    assert list(ServerCredential.objects.values_list("pk", flat=True)) == before


def test_nobody_chooses_a_team_that_the_owner_is_not_in(
    acme: Guarded, olga: User, sales: Group, support: Group
) -> None:
    agent, role = AgentRow.objects.get(name="scout"), Group.objects.get(name=Role.VIEWER)
    for team in (sales, role):
        with pytest.raises(AccountRefused):
            accounts.set_team(agent, team, by=olga)
    mallory = person("mallory", Role.VIEWER)
    mallory.groups.add(support)
    assert _choose("mallory", "support") == 404
    assert _choose("olga", "sales") == 302
    with pytest.raises(CommandError):
        call_command("update_agent", "scout", "--team", "sales")

    agent.refresh_from_db()
    assert agent.team is None


async def test_an_agents_own_key_is_carried_by_no_other_and_ends_with_the_agent(
    play: Play, toolset: Toolset, olga: User, support: Group
) -> None:
    server = await Server.objects.aget(slug="rec")
    await sync_to_async(set_up)(server, Server.SignIn.AGENT_KEY, by=olga, header="X-Api-Key")
    token = await sync_to_async(an_agent_of)("dora", toolset, support)
    scout = await AgentRow.objects.aget(name="scout")
    blocked = await play().call("rec.echo", {"text": "hello"})
    assert "An operator has to connect the agent “scout” at “rec” first" in blocked.text

    await sync_to_async(_enter_key)("olga", scout.pk, "key-of-scout")

    reply = await play().call("rec.echo", {"text": "hello"})
    assert reply.text == "hello"
    first = await Entry.objects.aget(call_id=reply.call_id, seq=1)
    assert first.details["credential"]["owner"] == "agent:scout"
    other = await play(token=token).call("rec.echo", {"text": "hello"})
    assert "connect the agent “rover”" in other.text
    await sync_to_async(accounts.set_agent_enabled)(scout, False, by=olga)
    await sync_to_async(remove_credentials)()
    assert not await ServerCredential.objects.aexists()


def _enter_key(name: str, owner: int, key: str) -> None:
    client = Client()
    client.force_login(user(name))
    answer = client.post("/servers/rec/sign-in/connect/", {"owner": owner, "key": key})
    assert answer.status_code == 302
    page = client.get("/servers/rec/sign-in/").text
    assert "scout" in page
    assert key not in page


async def test_an_expired_token_of_a_team_is_renewed_for_it(
    play: Play, acme: Guarded, support: Group
) -> None:
    soon = timezone.now() + timedelta(seconds=1)
    await ServerCredential.objects.aupdate(expires_at=soon)

    assert (await play().call("acme.echo", {"text": "hello"})).text == "hello"

    row = await ServerCredential.objects.aget()
    assert (row.team_id, row.generation) == (support.pk, 2)
    entry = await Entry.objects.aget(action="credential.renewed")
    assert entry.details["owner"] == "team:support"
