"""A database or a broker that hangs: it takes what it is told, and says nothing."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import aiohttp
import psycopg
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import Agent as AgentRow
from accounts.models import User
from approvals import services
from approvals.models import Approval, Vote
from approvals.services import DecisionRefused
from calls.models import Call
from calls.record.states import Executed, State
from policies.models import Effect
from registry.models import Tool, Toolset
from tests.console import scenery
from tests.database import Databases
from tests.faults.proxy import BrokerWire, DatabaseWire
from tests.gateway.agent import LEGACY, TASKS, Agent
from tests.gateway.conftest import AddRule, Play, add_rule, decide, until
from tests.gateway.test_rest import Rest
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)
# Longer than any of our own deadlines, and shorter than what hung before there were any.
PROMPTLY_S = 6.0


@pytest.fixture(scope="module")
def wires() -> Iterator[tuple[DatabaseWire, BrokerWire]]:
    with (
        DatabaseWire(os.environ["DATABASE_URL"]) as database,
        BrokerWire(os.environ["REDIS_URL"]) as broker,
    ):
        yield database, broker


@pytest.fixture
def database(wires: tuple[DatabaseWire, BrokerWire]) -> Iterator[DatabaseWire]:
    yield wires[0]
    wires[0].let_go()


@pytest.fixture
def broker(wires: tuple[DatabaseWire, BrokerWire]) -> Iterator[BrokerWire]:
    yield wires[1]
    wires[1].let_go()


@pytest.fixture(scope="module")
def house(
    tmp_path_factory: pytest.TempPathFactory, wires: tuple[DatabaseWire, BrokerWire]
) -> Iterator[Stack]:
    """Processes whose database and broker may be made to hang; the test's own do not, nor does
    the worker's database."""
    with Stack(tmp_path_factory.mktemp("hung")) as stack:
        stack.env |= {"REDIS_URL": wires[1].url, "COUNTERSIGN_DATABASE_SILENT_S": "0.5"}
        assert stack.worker
        stack.env |= {"DATABASE_URL": wires[0].url}
        yield stack


@pytest.fixture
def superuser(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    with databases.superuser(os.environ) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


@pytest.fixture
def agent(play: Play, house: Stack, toolset: Toolset) -> Agent:
    assert house.agents
    return play(at_stack=house, capabilities=TASKS)


def in_background(tool: str) -> None:
    Tool.objects.filter(name=tool).update(mode=Tool.Mode.BACKGROUND)


@pytest.mark.long
async def test_while_the_database_hangs_agents_are_refused_and_nothing_is_sent(
    agent: Agent, database: DatabaseWire, upstream: Recorder
) -> None:
    assert (await agent.call("rec.echo", {"text": "before"})).text == "before"
    upstream.received.clear()

    database.hold()
    async with asyncio.timeout(PROMPTLY_S):
        texts = [str(n) for n in range(8)]
        replies = await asyncio.gather(*(agent.call("rec.echo", {"text": t}) for t in texts))

    assert {reply.status for reply in replies} == {503}
    assert {reply.headers["Retry-After"] for reply in replies} == {"1"}
    database.let_go()

    async def answers() -> bool:
        return (await agent.call("rec.echo", {"text": "after"})).status == 200

    await until(answers)
    assert {call.arguments for call in upstream.calls} == {b'{"text": "after"}'}


@pytest.mark.long
async def test_it_is_unwell_as_long_as_the_database_hangs(
    house: Stack, database: DatabaseWire, http: aiohttp.ClientSession
) -> None:
    assert house.web
    assert house.agents
    database.hold()

    async with asyncio.timeout(PROMPTLY_S):
        for url in (house.web_url, house.agents_url):
            # What was known a moment ago is still true.
            await until(partial(is_unwell, http, url))
            # Who waits for the database is not dead, and need not be started anew.
            assert await probe(http, f"{url}/livez") == 200
    database.let_go()

    for url in (house.web_url, house.agents_url):
        await until(partial(is_well, http, url))


@pytest.mark.long
async def test_documents_and_tokens_are_answered_in_their_form_while_the_database_hangs(
    house: Stack, rest: Rest, toolset: Toolset, database: DatabaseWire, http: aiohttp.ClientSession
) -> None:
    assert house.agents
    await Toolset.objects.filter(pk=toolset.pk).aupdate(agent_sign_in=True)
    at_agents = f"{house.agents_url}/.well-known/oauth-protected-resource/mcp/{toolset.slug}"
    at_console = f"{house.web_url}/.well-known/oauth-authorization-server"

    async def answers() -> bool:
        async with http.get(at_agents) as one, http.get(at_console) as other:
            return (one.status, other.status) == (200, 200)

    await until(answers)
    database.hold()
    async with asyncio.timeout(2 * PROMPTLY_S):
        # Not that there is no such document: what was known a moment ago is still true.
        await until(partial(is_unavailable, http, at_agents))
        async with http.get(at_console) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert (await response.json())["error"] == "temporarily_unavailable"
        reply = await rest.get("tools")

    assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
    assert "Tokens cannot be checked" in json.loads(reply.body)["detail"]


async def is_unavailable(http: aiohttp.ClientSession, url: str) -> bool:
    async with http.get(url) as response:
        assert response.status in (200, 503)
        return response.status == 503


async def is_unwell(http: aiohttp.ClientSession, url: str) -> bool:
    return await probe(http, f"{url}/readyz") == 503


async def is_well(http: aiohttp.ClientSession, url: str) -> bool:
    return await probe(http, f"{url}/readyz") == 200


async def probe(http: aiohttp.ClientSession, url: str) -> int:
    """As balancers ask, who know no name of ours."""
    async with http.get(url, headers={"Host": "10.1.2.3:8000"}) as response:
        return response.status


@pytest.mark.long
async def test_a_long_call_whose_record_comes_too_late_is_never_sent(
    agent: Agent, database: DatabaseWire, upstream: Recorder
) -> None:
    await sync_to_async(in_background)("echo")
    await agent.ask("tools/list")
    database.once_said(b"too late", then=database.hold_answers)
    async with asyncio.timeout(PROMPTLY_S):
        reply = await agent.call("rec.echo", {"text": "too late"})
    assert reply.status == 503

    async def waits() -> bool:
        return await Call.objects.aexists()

    await until(waits)
    database.let_go()

    async def ended() -> Call | None:
        return await Call.objects.filter(finished_at__isnull=False).afirst()

    assert (await until(ended)).executed == "no"
    assert upstream.calls == []


def backends(connection: psycopg.Connection[Any], name: str = "countersign journal") -> set[int]:
    found = connection.execute(
        "SELECT pid FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE %s",
        [name],
    )
    return {pid for (pid,) in found}


@contextmanager
def stopped(pids: set[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.long
async def test_backends_that_hang_while_others_answer_are_not_waited_for_by_rest(
    own_stack: Stack,
    http: aiohttp.ClientSession,
    toolset: Toolset,
    scout_token: str,
    databases: Databases,
) -> None:
    with databases.superuser(os.environ) as connection:
        before = backends(connection, "%")
        assert own_stack.web
        rest = Rest(http, own_stack.web_url, scout_token)
        assert (await rest.get("tools")).status == 200
        with stopped(backends(connection, "%") - before):
            async with asyncio.timeout(PROMPTLY_S):
                reply = await rest.get("tools")
    assert reply.status == 503


@pytest.mark.long
async def test_backends_that_go_on_after_minutes_do_nothing_of_what_they_were_told(
    play: Play, own_stack: Stack, databases: Databases, upstream: Recorder
) -> None:
    """Each process is stopped by itself, and the server takes new connections all the while."""
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    await agent.call("rec.echo", {"text": "before"})
    before = await Call.objects.acount()
    upstream.received.clear()
    with databases.superuser(os.environ) as connection:
        told = backends(connection)
        with stopped(told):
            assert (await agent.call("rec.echo", {"text": "late"})).status == 503

            async def is_given_up() -> bool:
                return bool(backends(connection) - told)

            await until(is_given_up)

        # Of those that were idle nothing is to be feared: they stay.
        async def has_ended() -> bool:
            return bool(told - backends(connection))

        await until(has_ended)

    # Where one committed before it was told to end, the call is taken back, and was never sent.
    async def none_is_open() -> bool:
        return not await Call.objects.filter(finished_at=None).aexists()

    await until(none_is_open)
    late = Call.objects.filter(executed=Executed.NO)
    assert await Call.objects.acount() - before == await late.acount() <= 1
    assert upstream.calls == []


@pytest.mark.long
async def test_a_held_call_whose_record_comes_too_late_ends_and_says_why(
    agent: Agent,
    database: DatabaseWire,
    upstream: Recorder,
    rule: AddRule,
    client: Client,
    alice: User,
) -> None:
    await rule(Effect.ASK, "echo")
    await agent.ask("tools/list")
    database.once_said(b"too late", then=database.hold_answers)
    async with asyncio.timeout(PROMPTLY_S):
        reply = await agent.call("rec.echo", {"text": "too late"})
    assert reply.status == 503

    async def waits() -> Call | None:
        return await Call.objects.filter(state=State.HELD).afirst()

    call: Call = await until(waits)
    voted = await sync_to_async(refused_vote)(call, alice)
    assert "Its agent has not been notified yet that it is pending" in voted
    database.let_go()

    async def ended() -> Call | None:
        return await Call.objects.filter(finished_at__isnull=False).afirst()

    call = await until(ended)
    assert (call.state, call.executed) == (State.WITHDRAWN, "no")
    await sync_to_async(client.force_login)(alice)
    card = (await sync_to_async(client.get)(f"/queue/{call.pk}/")).text
    assert "could not be notified in time that it was recorded. It was never sent." in card
    assert upstream.calls == []


def refused_vote(call: Call, person: User) -> str:
    approval = Approval.objects.for_queue().get(pk=call.pk)
    with pytest.raises(DecisionRefused) as refused:
        services.vote(approval, by=person, approve=True, seen_digest=call.call_digest)
    return str(refused.value)


@pytest.mark.long
async def test_who_asks_for_the_same_again_is_told_of_a_held_call_that_came_late(
    agent: Agent, rule: AddRule, alice: User, upstream: Recorder
) -> None:
    await rule(Effect.ASK, "echo")
    held = (await agent.call("rec.echo", {"text": "x"})).call_id
    late = Call.objects.filter(pk=held)
    assert (await late.aget()).start_after is None
    # As it stands while its gateway has not confirmed it.
    await late.aupdate(start_after=timezone.now() + timedelta(days=1))
    assert "not been notified yet" in await sync_to_async(refused_vote)(await late.aget(), alice)

    assert (await agent.call("rec.echo", {"text": "x"})).call_id == held
    await decide(alice)

    async def sent() -> bool:
        return bool(upstream.calls)

    await until(sent)


@pytest.mark.long
async def test_who_joins_a_call_while_it_is_approved_leaves_its_time_to_start(
    play: Play, own_stack: Stack, database: DatabaseWire, rule: AddRule, alice: User
) -> None:
    own_stack.env["DATABASE_URL"] = database.url
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    await rule(Effect.ASK, "echo", start_within=7200)
    held = (await agent.call("rec.echo", {"text": "x"})).call_id
    approved = threading.Event()

    def approve() -> None:
        async_to_sync(decide)(alice)
        connection.close()
        database.let_go()
        approved.set()

    # The gateway has read that the call waits for people, and has yet to say that its agent knows.
    database.once_said(b"call.joined", then=approve)
    joined = await agent.call("rec.echo", {"text": "x"})

    assert (joined.call_id, approved.is_set()) == (held, True)
    # A worker may have run it since.
    approved_call = await Call.objects.exclude(state=State.HELD).aget()
    assert approved_call.start_by is not None
    assert approved_call.start_by - approved_call.asked_at > timedelta(hours=2)


def test_a_held_call_that_nobody_confirms_ends_by_itself(
    scout: AgentRow, olga: User, superuser: psycopg.Connection[Any]
) -> None:
    tool = scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())
    held = scenery.call(scout, tool, scenery.MAIL, State.HELD, unconfirmed_s=1e6)
    services.expire()
    assert Call.objects.get(pk=held).state == State.HELD
    superuser.execute("UPDATE calls_call SET asked_at = asked_at - interval '31 s'")

    services.expire()

    assert Call.objects.get(pk=held).state == State.WITHDRAWN
    assert Approval.objects.get(pk=held).state == Approval.State.WITHDRAWN


@pytest.mark.long
async def test_who_waits_for_an_outcome_that_cannot_be_read_is_told_so(
    house: Stack,
    play: Play,
    toolset: Toolset,
    database: DatabaseWire,
    upstream: Recorder,
) -> None:
    await sync_to_async(in_background)("hang")
    assert house.agents
    waiting = play(LEGACY[0], at_stack=house)
    await waiting.ask("tools/list")
    asking = asyncio.create_task(waiting.call("rec.hang"))
    await until(partial(was_received, upstream))

    database.hold()
    async with asyncio.timeout(3 * PROMPTLY_S):
        reply = await asking

    call = await Call.objects.aget()
    assert reply.result["isError"] is True
    assert "The record cannot be read right now" in reply.text
    assert str(call.pk) in reply.text
    assert reply.result["_meta"]["countersign/executed"] == "unknown"
    database.let_go()

    async def known_as_not_told() -> bool:
        return await Call.objects.filter(unheard_at__isnull=False).aexists()

    await until(known_as_not_told)
    upstream.release()


@pytest.mark.long
async def test_who_waits_for_a_legacy_tasks_result_is_told_that_it_cannot_be_read(
    house: Stack,
    play: Play,
    toolset: Toolset,
    database: DatabaseWire,
    upstream: Recorder,
) -> None:
    await sync_to_async(in_background)("hang")
    assert house.agents
    waiting = play(LEGACY[0], at_stack=house)
    params = {"name": "rec.hang", "arguments": {}, "task": {}}
    task = (await waiting.ask("tools/call", params)).result["task"]
    asking = asyncio.create_task(waiting.ask("tasks/result", {"taskId": task["taskId"]}))
    await until(partial(was_received, upstream))

    database.hold()
    async with asyncio.timeout(3 * PROMPTLY_S):
        reply = await asking

    assert "The record cannot be read right now" in reply.error["message"]
    assert reply.error["data"]["call"] == str((await Call.objects.aget()).pk)
    upstream.release()


@pytest.mark.long
async def test_who_waits_while_its_gateway_makes_way_and_nothing_can_be_read_is_not_refused(
    play: Play, own_stack: Stack, database: DatabaseWire, rule: AddRule
) -> None:
    """People may let the call run, as they see it: a refusal would be untrue."""
    await rule(Effect.ASK, "echo")
    own_stack.env["DATABASE_URL"] = database.url
    agents = own_stack.agents
    waiting = play(LEGACY[0], at_stack=own_stack)
    await waiting.ask("tools/list")
    asking = asyncio.create_task(waiting.call("rec.echo", {"text": "x"}))

    async def is_held() -> bool:
        return await Call.objects.filter(state=State.HELD, start_after=None).aexists()

    await until(is_held)
    database.hold()
    os.kill(agents.pid, signal.SIGTERM)
    async with asyncio.timeout(3 * PROMPTLY_S):
        reply = await asking

    assert reply.status == 200
    assert "It may have been executed" in reply.text
    assert reply.result["_meta"]["countersign/executed"] == "unknown"
    assert reply.result["_meta"]["countersign/state"] == State.HELD


async def was_received(upstream: Recorder) -> bool:
    return bool(upstream.calls)


@pytest.mark.long
async def test_an_outcome_that_the_record_does_not_take_is_told_once_it_has(
    agent: Agent, database: DatabaseWire, upstream: Recorder
) -> None:
    """Sent by the agents' own process, whose spool has the reply."""
    await agent.ask("tools/list")
    agent.capabilities = {}
    asking = asyncio.create_task(agent.call("rec.hang"))
    await until(partial(was_received, upstream))

    database.hold()
    upstream.release()
    async with asyncio.timeout(3 * PROMPTLY_S):
        reply = await asking

    assert "The record cannot be read right now" in reply.text
    assert reply.result["_meta"]["countersign/executed"] == "unknown"
    database.let_go()

    async def written() -> bool:
        done = Call.objects.filter(state=State.SUCCEEDED, unheard_at__isnull=False)
        return await done.aexists()

    await until(written)
    again = await agent.call("rec.hang")
    assert (again.status, again.call_id) == (200, reply.call_id)
    assert not again.result.get("isError")
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_a_broker_that_hangs_holds_up_no_call(
    agent: Agent, broker: BrokerWire, upstream: Recorder
) -> None:
    await sync_to_async(in_background)("echo")
    await agent.ask("tools/list")

    broker.hold()
    async with asyncio.timeout(PROMPTLY_S):
        # More than there are threads to wait in.
        texts = [str(n) for n in range(12)]
        replies = await asyncio.gather(*(agent.call("rec.echo", {"text": t}) for t in texts))
    assert {reply.result["resultType"] for reply in replies} == {"task"}

    async def all_done() -> bool:
        return await Call.objects.filter(state=State.SUCCEEDED).acount() == len(texts)

    await until(all_done)
    assert len(upstream.calls) == len(texts)
    broker.let_go()


@pytest.fixture
def rest(house: Stack, http: aiohttp.ClientSession, toolset: Toolset, scout_token: str) -> Rest:
    assert house.web
    return Rest(http, house.web_url, scout_token)


@pytest.fixture(params=["hold", "cut"])
def goes_away(request: pytest.FixtureRequest, database: DatabaseWire) -> Callable[[], None]:
    """Hangs, or is gone."""
    leave: Callable[[], None] = getattr(database, request.param)
    return leave


@pytest.mark.long
async def test_rest_says_of_a_call_that_was_sent_that_it_is_recorded(
    rest: Rest, goes_away: Callable[[], None], upstream: Recorder
) -> None:
    asking = asyncio.create_task(rest.call("rec.hang", wait=5))
    await until(partial(was_received, upstream))
    goes_away()
    async with asyncio.timeout(2 * PROMPTLY_S):
        reply = await asking

    assert reply.status == 503
    assert reply.headers["Content-Type"] == "application/problem+json"
    problem = json.loads(reply.body)
    assert problem["recorded"] == "yes"
    assert problem["call"] == str((await Call.objects.aget()).pk)
    assert problem["look"] == f"/api/calls/{problem['call']}"
    assert "is recorded" in problem["detail"]
    upstream.release()


@pytest.mark.long
async def test_rest_names_the_call_that_it_cannot_show(
    rest: Rest, goes_away: Callable[[], None]
) -> None:
    async def answers() -> Any:
        # The test before may have left connections that are found broken by their next use.
        return json.loads((await rest.call("rec.echo", {"text": "x"})).body).get("id")

    call_id = await until(answers)

    goes_away()
    async with asyncio.timeout(2 * PROMPTLY_S):
        shown = await rest.get(f"calls/{call_id}")
        cancelled = await rest.send("POST", f"calls/{call_id}/cancel")
        made = await rest.call("rec.echo", {"text": "y"})

    assert {reply.status for reply in (shown, cancelled, made)} == {503}
    assert {json.loads(reply.body)["call"] for reply in (shown, cancelled)} == {call_id}
    assert json.loads(made.body)["status"] == 503


@pytest.mark.long
async def test_rest_says_of_a_call_that_is_not_recorded_yet_no_more_than_is_known(
    rest: Rest, database: DatabaseWire, upstream: Recorder
) -> None:
    def answers_late() -> None:
        threading.Event().wait(1.5)
        database.once_said(b"too late", then=database.hold)
        database.let_go()

    # Whether it stands for a call already, is answered after most of the time that there is.
    database.once_said(b"calls_once", then=answers_late)
    body = {"toolset": "desk", "tool": "rec.echo", "arguments": {"text": "too late"}}
    async with asyncio.timeout(2 * PROMPTLY_S):
        reply = await rest.send("POST", "calls?wait=0", body, **{"Idempotency-Key": "k"})

    assert reply.status == 503
    assert json.loads(reply.body)["recorded"] in ("no", "unknown")
    assert upstream.calls == []


@dataclass
class Person:
    """A browser in which somebody is signed in."""

    http: aiohttp.ClientSession
    url: str
    session: str

    async def press(self, path: str, *, htmx: bool = False, **fields: str) -> tuple[int, str]:
        cookies = {"sessionid": self.session, "csrftoken": "c" * 32}
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        headers |= {"HX-Request": "true"} if htmx else {}
        data = {**fields, "csrfmiddlewaretoken": "c" * 32}
        address = f"{self.url}{path}"
        async with self.http.post(
            address, data=data, headers=headers, allow_redirects=False
        ) as response:
            return response.status, await response.text()


@pytest.fixture
def approver(house: Stack, http: aiohttp.ClientSession, alice: User) -> Person:
    assert house.web
    client = Client()
    client.force_login(alice)
    return Person(http, house.web_url, client.cookies["sessionid"].value)


@pytest.fixture
async def held(agent: Agent) -> Call:
    await sync_to_async(add_rule)(Effect.ASK, "erase")
    await until(lambda: is_held(agent))
    return await Call.objects.aget(state=State.HELD)


async def is_held(agent: Agent) -> bool:
    await agent.call("rec.erase")
    return await Call.objects.filter(state=State.HELD).aexists()


async def has_votes(count: int) -> bool:
    return await Vote.objects.acount() == count


VOTE = b'INSERT INTO "approvals_vote"'
# What the vote's request says last, and what is known then.
MOMENTS = {
    "before": ([b"FOR UPDATE"], "was not recorded", 0),
    "committing": ([VOTE, b"COMMIT"], "is not known", 1),
    "after": ([VOTE, b"COMMIT", b"SELECT"], "is recorded", 1),
}


@pytest.mark.long
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("htmx", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_whoever_votes_is_told_what_is_known_of_the_vote(
    approver: Person,
    held: Call,
    database: DatabaseWire,
    goes_away: Callable[[], None],
    moment: str,
    htmx: bool,
) -> None:
    said, sentence, votes = MOMENTS[moment]
    database.once_said(*said, then=goes_away)
    async with asyncio.timeout(2 * PROMPTLY_S):
        path = f"/queue/{held.pk}/approve/"
        status, page = await approver.press(path, htmx=htmx, seen=held.call_digest)

    assert status == 503
    assert sentence in page
    assert str(held.pk) in page
    # A server that nobody hears any more commits what it heard in its own time.
    await until(lambda: has_votes(votes))
