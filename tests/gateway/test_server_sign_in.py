"""Calls that carry their person's own credential to a server, and what becomes of those without."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.utils import timezone

from accounts import services as accounts
from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from calls.record.states import Executed, State
from policies.models import Effect
from registry import services
from registry.discovery import discovery
from registry.models import Server, ServerCredential, Toolset
from registry.tasks import remove_credentials
from tests.conftest import person
from tests.gateway.agent import LEGACY, URLS, Agent
from tests.gateway.conftest import AddRule, Play, the_call
from tests.processes import Stack
from tests.signing_in import connect, set_up
from tests.upstreams.guarded import Guarded

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def running_guarded() -> Iterator[Guarded]:
    with Guarded() as guarded:
        yield guarded


@pytest.fixture
def acme(running_guarded: Guarded, toolset: Toolset, bob: User) -> Guarded:
    """A server of bob's toolset at which each person signs in; bob has, as bob."""
    running_guarded.reset()
    server = services.register(
        "acme", transport="http", url=running_guarded.url, owner=bob, by=bob, publish=True
    )
    services.add_server(toolset, server, by=bob)
    set_up(server, Server.SignIn.PERSON, by=bob)
    connect(bob, "acme")
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary
    running_guarded.callers.clear()
    return running_guarded


@pytest.fixture
def dora_token(acme: Guarded, toolset: Toolset) -> str:
    """Of an agent of dora's, who is not signed in at acme."""
    dora = person("dora", Role.VIEWER)
    agent = accounts.create_agent("rover", owner=dora, by=dora)
    services.assign(toolset, agent, by=dora)
    return accounts.issue_token(agent, by=dora)


def user(name: str) -> User:
    return User.objects.get(username=name)


@pytest.mark.long
async def test_two_people_each_reach_it_with_their_own_credential(
    play: Play, acme: Guarded, dora_token: str
) -> None:
    await sync_to_async(connect)(await sync_to_async(user)("dora"), "acme")
    agents = [play(), play(token=dora_token)]

    replies = await asyncio.gather(
        *(agent.call("acme.echo", {"text": "hello"}) for agent in agents for _ in range(10))
    )

    assert {reply.text for reply in replies} == {"hello"}
    assert sorted(acme.callers) == [("bob", "echo")] * 10 + [("dora", "echo")] * 10
    first = await Entry.objects.filter(seq=1, agent="rover").afirst()
    assert first is not None
    used = await ServerCredential.objects.aget(person__username="dora")
    assert first.details["credential"] == {
        "owner": "dora",
        "issuer": acme.issuer,
        "id": used.pk,
        "generation": 1,
    }
    console = Client()
    await sync_to_async(console.force_login)(await sync_to_async(user)("dora"))
    page = await sync_to_async(console.get)(f"/calls/{first.call_id}/")
    assert page.content.decode().count(f"{acme.issuer} #{used.pk}.1") == 2
    last = await Entry.objects.aget(call_id=first.call_id, action="call.succeeded")
    assert last.details["credential"] == first.details["credential"]


@pytest.mark.long
async def test_without_a_credential_nothing_is_sent_and_the_agent_gets_the_link(
    play: Play, acme: Guarded, dora_token: str
) -> None:
    reply = await play(token=dora_token).call("acme.echo", {"text": "hello"})

    assert reply.result["isError"] is True
    assert "dora has to sign in at “acme” first" in reply.text
    assert acme.callers == []
    call = await the_call(reply.call_id)
    assert (call.state, call.executed) == (State.REFUSED, Executed.NO)


@pytest.mark.long
async def test_a_credential_put_into_another_persons_row_opens_nothing_and_is_recorded(
    play: Play, acme: Guarded, dora_token: str
) -> None:
    """Whoever can write to the database cannot have dora's agent act as bob."""
    await sync_to_async(connect)(await sync_to_async(user)("dora"), "acme")
    of_bob = await ServerCredential.objects.aget(person__username="bob")
    await ServerCredential.objects.filter(person__username="dora").aupdate(sealed=of_bob.sealed)

    reply = await play(token=dora_token).call("acme.echo", {"text": "hello"})

    assert reply.result["isError"] is True
    assert acme.callers == []
    call = await the_call(reply.call_id)
    assert (call.state, call.executed) == (State.FAILED, Executed.NO)
    entry = await Entry.objects.aget(call_id=call.pk, action="call.failed")
    assert "The credential cannot be opened here: sign in again." in entry.reason


@pytest.mark.long
async def test_a_client_that_opens_pages_is_asked_and_goes_on_after_the_sign_in(
    play: Play, acme: Guarded, dora_token: str
) -> None:
    agent = play(token=dora_token, capabilities=URLS)
    first = (await agent.call("acme.echo", {"text": "hello"})).result
    ((key, request),) = first["inputRequests"].items()
    assert (first["resultType"], request["params"]["mode"]) == ("input_required", "url")

    path = urlsplit(request["params"]["url"]).path
    again = asyncio.create_task(
        agent.ask(
            "tools/call",
            {
                "name": "acme.echo",
                "arguments": {"text": "hello"},
                "inputResponses": {key: {"action": "accept"}},
            },
        )
    )
    await sync_to_async(_sign_in_by)(path, "dora")

    reply = await again
    assert reply.text == "hello"
    assert acme.callers == [("dora", "echo")]
    # What was answered to us is nothing to the server.
    assert b"inputResponses" not in acme.calls[-1].body


def _sign_in_by(path: str, name: str) -> None:
    client = Client()
    client.force_login(user(name))
    assert client.get(path).status_code == 200
    connect(user(name), "acme")


@pytest.mark.long
async def test_who_declines_to_open_the_page_is_not_asked_again(
    play: Play, acme: Guarded, dora_token: str
) -> None:
    agent = play(token=dora_token, capabilities=URLS)
    first = (await agent.call("acme.echo", {"text": "hello"})).result
    (key,) = first["inputRequests"]

    reply = await agent.call(
        "acme.echo", {"text": "hello"}, inputResponses={key: {"action": "decline"}}
    )

    assert "dora has to sign in" in reply.text
    assert acme.callers == []


@pytest.mark.long
async def test_a_client_of_2025_11_25_gets_the_error_that_names_the_page(
    play: Play, acme: Guarded, dora_token: str
) -> None:
    agent = play(LEGACY[0], token=dora_token, capabilities=URLS)

    reply = await agent.call("acme.echo", {"text": "hello"})

    assert (reply.status, reply.error["code"]) == (200, -32042)
    (page,) = reply.error["data"]["elicitations"]
    assert page["mode"] == "url"
    assert "/connections/acme/" in page["url"]


@pytest.mark.long
async def test_a_refused_token_is_renewed_once_and_the_call_sent_once_more(
    agent: Agent, acme: Guarded
) -> None:
    acme.expire()

    reply = await agent.call("acme.echo", {"text": "hello"})

    assert reply.text == "hello"
    assert [grant["grant_type"] for grant in acme.grants] == ["authorization_code", "refresh_token"]
    assert len(acme.callers) == 1
    actions = [e async for e in Entry.objects.filter(call_id=reply.call_id).order_by("seq", "id")]
    again = [one for one in actions if one.action == "call.sent_again"]
    assert len(again) == acme.turned_away


@pytest.mark.long
async def test_a_server_that_refuses_each_token_gets_the_call_twice_and_no_more(
    agent: Agent, acme: Guarded
) -> None:
    await agent.call("acme.echo", {"text": "warm"})
    acme.lasts_s = -1
    acme.expire()
    before = acme.turned_away

    reply = await agent.call("acme.echo", {"text": "hello"})

    assert reply.result["isError"] is True
    assert "/connections/acme/" in reply.text
    assert acme.turned_away - before <= 2
    assert [c for c in acme.callers if c == ("bob", "echo")] == [("bob", "echo")]


@pytest.mark.long
async def test_a_refresh_token_that_is_no_good_ends_the_connection(
    agent: Agent, acme: Guarded
) -> None:
    acme.expire()
    acme.refresh.clear()

    reply = await agent.call("acme.echo", {"text": "hello"})

    assert "bob has to sign in at “acme” first" in reply.text
    row = await ServerCredential.objects.aget()
    assert (bool(row.ended), row.sealed) == (True, None)
    assert await Entry.objects.filter(action="credential.ended").acount() == 1


@pytest.mark.long
async def test_a_missing_scope_is_asked_of_the_person(agent: Agent, acme: Guarded) -> None:
    acme.needs = {"erase": "erase"}

    reply = await agent.call("acme.erase")

    assert "HTTP 403" in reply.text
    row = await ServerCredential.objects.aget()
    assert row.wanted_scopes == ["erase"]
    await sync_to_async(connect)(await sync_to_async(user)("bob"), "acme")
    assert "result" in (await agent.call("acme.erase")).last
    assert acme.callers[-1] == ("bob", "erase")


@pytest.mark.long
async def test_a_missing_scope_is_elicited_and_the_call_goes_on_afterwards(
    play: Play, acme: Guarded, dora_token: str
) -> None:
    acme.needs = {"erase": "erase"}
    agent = play(capabilities=URLS)

    first = await agent.call("acme.erase")

    assert first.result["resultType"] == "input_required"
    ((key, asked),) = first.result["inputRequests"].items()
    assert asked["params"]["mode"] == "url"
    assert "“acme” asks for “erase”: bob has to allow it at" in asked["params"]["message"]
    again = asyncio.create_task(
        agent.call("acme.erase", inputResponses={key: {"action": "accept"}})
    )
    path = urlsplit(asked["params"]["url"]).path
    assert await sync_to_async(_status)(path, "dora") in (403, 404)
    await sync_to_async(_sign_in_by)(path, "bob")

    assert "result" in (await again).last
    assert acme.callers == [("bob", "erase")]


@pytest.mark.long
async def test_a_client_without_elicitation_gets_the_scope_and_the_page(
    play: Play, acme: Guarded
) -> None:
    acme.needs = {"erase": "erase"}

    reply = await play().call("acme.erase")
    legacy = await play(LEGACY[0], capabilities=URLS).call("acme.erase")

    assert reply.result["isError"] is True
    assert "“acme” asks for “erase”: bob has to allow it at" in reply.text
    assert legacy.error["code"] == -32042
    assert "/connections/acme/" in legacy.error["data"]["elicitations"][0]["url"]


def _status(path: str, name: str) -> int:
    client = Client()
    client.force_login(user(name))
    return client.get(path).status_code


@pytest.mark.long
async def test_rules_know_whose_credential_it_is(
    agent: Agent, acme: Guarded, rule: AddRule
) -> None:
    await rule(Effect.DENY, "*", when="credential.owner == 'bob'")

    assert (await agent.call("acme.echo", {"text": "hello"})).result["isError"] is True
    assert (await agent.call("rec.echo", {"text": "hello"})).text == "hello"


@pytest.mark.long
async def test_the_card_and_the_calls_page_name_whose_credential_it_is(
    play: Play, acme: Guarded, rule: AddRule, alice: User
) -> None:
    await rule(Effect.ASK, "echo")

    reply = await play(capabilities=URLS).call("acme.echo", {"text": "hello"})

    pages = await sync_to_async(_pages_of)(reply.call_id, alice)
    assert "With bob's own credential at acme." in pages[0].replace("&#x27;", "'")
    assert "bob's own" in pages[1].replace("&#x27;", "'")
    assert not [one for one in acme.access for page in pages if one in page]


def _pages_of(call_id: str, who: User) -> list[str]:
    client = Client()
    client.force_login(who)
    return [client.get(f"/{place}/{call_id}/").text for place in ("queue", "calls")]


@pytest.mark.long
async def test_nothing_of_a_person_who_left_is_sent_and_it_is_revoked_and_deleted(
    agent: Agent, play: Play, acme: Guarded, dora_token: str
) -> None:
    dora = await sync_to_async(user)("dora")
    await sync_to_async(connect)(dora, "acme")
    assert (await play(token=dora_token).call("acme.echo", {"text": "hello"})).text == "hello"
    theirs = {name for name, one in acme.access.items() if one.login == "dora"}

    await User.objects.filter(pk=dora.pk).aupdate(is_active=False)
    await sync_to_async(remove_credentials)()

    assert not await ServerCredential.objects.filter(person=dora).aexists()
    assert theirs <= set(acme.revoked)
    entry = await Entry.objects.filter(action="credential.removed").alast()
    assert entry is not None
    assert entry.details["owner"] == "dora"


@pytest.mark.long
async def test_one_refresh_for_two_processes_and_two_hundred_calls(
    play: Play, acme: Guarded, tmp_path: Path
) -> None:
    """One expiring token: no call is lost, and none is sent twice."""
    with Stack(tmp_path) as other:
        agents = [play(), play(at_stack=other)]
        assert other.agents
        for agent in agents:
            await agent.call("acme.echo", {"text": "warm"})
        acme.callers.clear()
        acme.slow_s = 0.5
        await ServerCredential.objects.aupdate(expires_at=timezone.now())

        replies = await asyncio.gather(
            *(agents[n % 2].call("acme.echo", {"text": f"n{n}"}) for n in range(200))
        )

    assert sorted(reply.text for reply in replies) == sorted(f"n{n}" for n in range(200))
    assert len(acme.callers) == 200
    assert [g["grant_type"] for g in acme.grants].count("refresh_token") == 1
    assert not await Entry.objects.filter(action="call.sent_again").aexists()
    assert (await ServerCredential.objects.aget()).generation == 2


@pytest.mark.long
async def test_two_hundred_calls_that_are_turned_away_at_once_lead_to_one_refresh(
    play: Play, acme: Guarded, tmp_path: Path
) -> None:
    """Each is sent at most once more, with its entry."""
    with Stack(tmp_path) as other:
        agents = [play(), play(at_stack=other)]
        assert other.agents
        for agent in agents:
            await agent.call("acme.echo", {"text": "warm"})
        acme.callers.clear()
        acme.turned_away = 0
        acme.slow_s = 0.3
        acme.expire()

        replies = await asyncio.gather(
            *(agents[n % 2].call("acme.echo", {"text": f"n{n}"}) for n in range(200))
        )

    assert sorted(reply.text for reply in replies) == sorted(f"n{n}" for n in range(200))
    assert len(acme.callers) == 200
    assert [g["grant_type"] for g in acme.grants].count("refresh_token") == 1
    again = await Entry.objects.filter(action="call.sent_again").acount()
    assert 0 < again == acme.turned_away


@pytest.mark.long
async def test_a_key_of_each_person_goes_into_the_header(
    play: Play, acme: Guarded, toolset: Toolset, http: aiohttp.ClientSession
) -> None:
    server = await Server.objects.aget(slug="rec")
    bob = await sync_to_async(user)("bob")
    await sync_to_async(set_up)(server, Server.SignIn.KEY, by=bob, header="X-Api-Key")
    blocked = await play().call("rec.echo", {"text": "hello"})
    assert "bob has to sign in" in blocked.text

    await sync_to_async(_enter_key)("bob", "rec", "key-of-bob")

    assert (await play().call("rec.echo", {"text": "hello"})).text == "hello"


def _enter_key(name: str, slug: str, key: str) -> None:
    client = Client()
    client.force_login(user(name))
    assert client.post(f"/connections/{slug}/connect/", {"key": key}).status_code == 302


def test_no_secret_is_in_the_record_or_the_logs(acme: Guarded, stack: Stack) -> None:
    secrets = [*acme.access, *acme.refresh]
    text = " ".join(str(vars(one)) for one in Entry.objects.all())
    for name in ("agents", "web", "worker"):
        if name in stack.started:
            text += stack.started[name].text()

    assert not [one for one in secrets if one in text]
