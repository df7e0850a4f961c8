"""No record, no call: what agents are told when the database cannot be written or read."""

import os
from collections.abc import Iterator

import psycopg
import pytest

from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from tests.database import Databases
from tests.gateway.agent import TASKS, Agent
from tests.gateway.conftest import AddRule, Play, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def superuser(databases: Databases) -> Iterator[psycopg.Connection]:
    with databases.superuser(os.environ) as link:
        yield link


@pytest.mark.long
async def test_a_call_that_cannot_be_recorded_is_not_sent(
    any_agent: Agent, superuser: psycopg.Connection, upstream: Recorder
) -> None:
    if any_agent.revision != "2026-07-28":
        await any_agent.begin()
    await any_agent.ask("tools/list")

    with superuser.transaction():
        superuser.execute("LOCK TABLE calls_call IN ACCESS EXCLUSIVE MODE")
        reply = await any_agent.call("rec.echo", {"text": "x"})

    assert reply.status == 503
    assert reply.headers["Retry-After"] == "1"
    assert "nothing was sent" in reply.error["message"]
    assert upstream.calls == []

    async def known_as_not_sent() -> bool:
        call = await Call.objects.afirst()
        return call is None or (call.state, call.executed) == (State.FAILED, "no")

    await until(known_as_not_sent)
    assert (await any_agent.call("rec.echo", {"text": "y"})).text == "y"


@pytest.mark.long
async def test_a_held_call_whose_record_is_late_is_withdrawn_and_may_be_asked_for_again(
    play: Play, rule: AddRule, superuser: psycopg.Connection, upstream: Recorder
) -> None:
    agent = play(capabilities=TASKS)
    await rule(Effect.ASK, "erase")
    await agent.ask("tools/list")

    with superuser.transaction():
        superuser.execute("LOCK TABLE approvals_approval IN ACCESS EXCLUSIVE MODE")
        reply = await agent.call("rec.erase", {})

    assert reply.status == 503
    assert "Whether the record was written is not known" in reply.error["message"]

    async def withdrawn() -> Call | None:
        return await Call.objects.filter(state=State.WITHDRAWN).afirst()

    late = await until(withdrawn)
    assert (str(late.pk), late.executed) == (reply.error["data"]["call"], "no")
    again = await agent.call("rec.erase", {})
    assert again.call_id != str(late.pk)
    assert (await Call.objects.aget(pk=again.call_id)).state == State.HELD
    assert upstream.calls == []


@pytest.mark.long
async def test_while_revocations_cannot_be_known_nobody_is_let_in(
    play: Play, own_stack: Stack, superuser: psycopg.Connection
) -> None:
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert (await agent.post(ping)).status == 200

    with superuser.transaction():
        superuser.execute("LOCK TABLE core_generation IN ACCESS EXCLUSIVE MODE")

        async def refused() -> bool:
            reply = await agent.post(ping)
            assert reply.status == 200 or reply.headers["Retry-After"] == "1"
            return reply.status == 503

        await until(refused)

    async def back() -> bool:
        return (await agent.post(ping)).status == 200

    await until(back)


async def test_the_consoles_process_serves_agents_too(
    play: Play, stack: Stack, upstream: Recorder
) -> None:
    assert stack.web
    agent = play()
    agent.url = f"{stack.web_url}/mcp/desk"

    reply = await agent.call("rec.steps", token="t")
    refused = await agent.post({}, headers={"Authorization": ""})

    assert reply.text == "done"
    assert len(reply.messages) == 4
    assert refused.status == 401
    assert len(upstream.calls) == 1
