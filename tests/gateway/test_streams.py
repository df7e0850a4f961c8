"""Progress, patience and going away: what happens between a request and its answer."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import User
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.models import Tool, Toolset
from tests.gateway.agent import Agent
from tests.gateway.conftest import AddRule, Play, server, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


async def until_running(upstream: Recorder) -> Call:
    async def called() -> bool:
        return bool(upstream.calls)

    await until(called)
    return await Call.objects.aget()


async def until_gone(upstream: Recorder) -> None:
    async def noticed() -> int:
        return upstream.gone

    await until(noticed)


async def in_state(*states: State) -> Call:
    async def reached() -> Call | None:
        return await Call.objects.filter(state__in=states).afirst()

    found: Call = await until(reached)
    return found


@pytest.mark.parametrize("token", ["t", 7, 0])
async def test_progress_comes_on_the_requests_own_stream(any_agent: Agent, token: Any) -> None:
    reply = await any_agent.call("rec.steps", token=token)

    assert reply.is_stream
    assert reply.headers["X-Accel-Buffering"] == "no"
    *steps, answer = reply.messages
    assert [step["params"] for step in steps] == [
        {"progressToken": token, "progress": n, "total": 3, "message": f"#{n}"} for n in (1, 2, 3)
    ]
    assert {step["method"] for step in steps} == {"notifications/progress"}
    assert answer["result"]["content"][0]["text"] == "done"


async def test_who_asks_for_no_progress_gets_one_document(any_agent: Agent) -> None:
    reply = await any_agent.call("rec.steps")

    assert not reply.is_stream
    assert reply.text == "done"


@pytest.mark.parametrize("token", [None, True, 1.5, [], {}])
async def test_what_is_no_progress_token_asks_for_none(agent: Agent, token: Any) -> None:
    message = await agent.message("tools/call", {"name": "rec.steps", "arguments": {}})
    message["params"]["_meta"]["progressToken"] = token

    reply = await agent.post(message, headers=agent.headers(message))

    assert not reply.is_stream


@pytest.mark.long
async def test_an_answer_that_takes_long_becomes_a_stream(agent: Agent, upstream: Recorder) -> None:
    message = await agent.message("tools/call", {"name": "rec.hang", "arguments": {}})

    async with agent.open(message) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        upstream.release()
        body = await response.text()

    assert json.loads(body.partition("data: ")[2])["result"]["content"][0]["text"] == "done"


async def test_progress_of_a_worker_comes_too(
    play: Play, rule: AddRule, stack: Stack, upstream: Recorder, alice: User
) -> None:
    assert stack.worker
    await sync_to_async(Tool.objects.filter(name="steps").update)(mode=Tool.Mode.BACKGROUND)
    # By its return the gateway knows what is above, too.
    await rule(Effect.ALLOW, "steps")

    reply = await play().call("rec.steps", token="t")

    assert (await Call.objects.aget()).mode == Call.Mode.BACKGROUND
    assert reply.text == "done"
    *steps, _answer = reply.messages
    progress = [step["params"]["progress"] for step in steps]
    assert progress == sorted(set(progress))


async def test_a_modern_client_that_goes_away_has_cancelled(
    agent: Agent, upstream: Recorder
) -> None:
    asking = asyncio.create_task(agent.call("rec.hang"))
    await until_running(upstream)

    asking.cancel()

    call = await in_state(State.CANCELLED, State.UNKNOWN)
    await until_gone(upstream)
    assert call.cancel_asked_by == "scout"


READS = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


@pytest.mark.long
@pytest.mark.parametrize(
    ("definition", "handling", "state"),
    [
        (READS, {"confirmed_read_only": True}, State.CANCELLED),
        (READS, {"safe_to_repeat": True}, State.CANCELLED),
        ({"inputSchema": {"type": "object"}}, {"cancel_is_final": True}, State.CANCELLED),
        # The server's word alone, and the operator's on what its server does not say.
        (READS, {}, State.UNKNOWN),
        ({"inputSchema": {"type": "object"}}, {"confirmed_read_only": True}, State.UNKNOWN),
    ],
)
async def test_a_cancelled_call_leaves_something_to_find_out_unless_an_operator_said_otherwise(
    play: Play,
    upstream: Recorder,
    toolset: Toolset,
    bob: User,
    rule: AddRule,
    definition: dict[str, Any],
    handling: dict[str, bool],
    state: State,
) -> None:
    upstream.tools = {"hang": definition}
    await server("slow", toolset, upstream, by=bob)
    await Tool.objects.filter(exposed_name="slow.hang").aupdate(**handling)
    await rule(Effect.ALLOW, "nothing")
    upstream.received.clear()
    asking = asyncio.create_task(play().call("slow.hang"))
    await until_running(upstream)

    asking.cancel()

    call = await in_state(State.CANCELLED, State.UNKNOWN)
    assert (call.state, call.executed) == (state, "unknown")


async def test_so_has_one_that_leaves_its_stream(agent: Agent, upstream: Recorder) -> None:
    params = {"name": "rec.hang", "arguments": {}}
    message = await agent.message("tools/call", params, token="t")
    asking = asyncio.create_task(agent.post(message, headers=agent.headers(message)))
    await until_running(upstream)

    asking.cancel()

    await in_state(State.CANCELLED, State.UNKNOWN)
    await until_gone(upstream)


@pytest.mark.long
async def test_a_legacy_client_that_goes_away_has_not(
    legacy_agent: Agent, upstream: Recorder
) -> None:
    await legacy_agent.begin()
    asking = asyncio.create_task(legacy_agent.call("rec.hang"))
    await until_running(upstream)
    asking.cancel()
    # Longer than it takes to notice.
    await asyncio.sleep(1.2)

    upstream.release()

    await in_state(State.SUCCEEDED)
    assert upstream.gone == 0


@pytest.fixture
async def second_gateway(own_stack: Stack) -> AsyncIterator[Stack]:
    assert own_stack.agents
    yield own_stack
    own_stack.agents.stop()


@pytest.mark.long
async def test_a_legacy_client_cancels_by_saying_so_to_any_process(
    play: Play, second_gateway: Stack, upstream: Recorder
) -> None:
    agent = play("2025-06-18")
    await agent.begin()
    params = {"name": "rec.hang", "arguments": {}}
    message = await agent.message("tools/call", params, request_id="the-call")
    asking = asyncio.create_task(agent.post(message, headers=agent.headers(message)))
    await until_running(upstream)

    url = f"{second_gateway.agents_url}/mcp/desk"
    reply = await agent.post(cancelled("the-call"), headers=agent.headers({}), url=url)

    assert reply.status == 202
    await in_state(State.CANCELLED, State.UNKNOWN)
    await until_gone(upstream)
    assert (await asking).result["isError"] is True


def cancelled(request_id: Any) -> dict[str, Any]:
    params = {"requestId": request_id, "reason": "changed my mind"}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


@sync_to_async
def another_agent(toolset: Toolset, owner: User) -> str:
    other = accounts.create_agent("other", owner=owner, by=owner)
    services.assign(toolset, other, by=owner)
    return accounts.issue_token(other, by=owner)


async def test_nobody_cancels_what_another_session_asked(
    play: Play, upstream: Recorder, toolset: Toolset, bob: User
) -> None:
    agent, same_agent = play("2025-06-18"), play("2025-06-18")
    stranger = play("2025-06-18", token=await another_agent(toolset, bob))
    message = await agent.message("tools/call", {"name": "rec.hang", "arguments": {}}, request_id=1)
    asking = asyncio.create_task(agent.post(message, headers=agent.headers(message)))
    call = await until_running(upstream)

    for other in (same_agent, stranger):
        await other.begin()
        reply = await other.post(cancelled(1), headers=other.headers({}))
        assert reply.status == 202
    # The id's type is part of it.
    await agent.post(cancelled("1"), headers=agent.headers({}))
    await agent.post(cancelled(1))

    await call.arefresh_from_db()
    assert call.cancel_asked_at is None
    upstream.release()
    assert (await asking).text == "done"


async def test_cancelling_withdraws_a_held_call(
    play: Play, upstream: Recorder, rule: AddRule
) -> None:
    await rule(Effect.ASK, "hang")
    agent = play("2025-11-25")
    message = await agent.message("tools/call", {"name": "rec.hang", "arguments": {}}, request_id=5)
    asking = asyncio.create_task(agent.post(message, headers=agent.headers(message)))
    await in_state(State.HELD)

    await agent.post(cancelled(5), headers=agent.headers({}))

    assert "Withdrawn by scout." in (await asking).text
    assert upstream.calls == []


async def test_answers_reach_the_one_who_asked(play: Play, toolset: Toolset, bob: User) -> None:
    token = await another_agent(toolset, bob)
    agents = [play(), play(token=token), play("2025-06-18"), play("2025-06-18", token=token)]
    for agent in agents[2:]:
        await agent.begin()

    async def one(agent: Agent, n: int) -> None:
        text = f"{agents.index(agent)}-{n}"
        params = {"name": "rec.echo", "arguments": {"text": text}}
        message = await agent.message("tools/call", params, request_id=1)
        reply = await agent.post(message, headers=agent.headers(message))
        assert reply.text == text

    async with asyncio.TaskGroup() as group:
        for n in range(100):
            for agent in agents:
                group.create_task(one(agent, n))

    assert await Call.objects.filter(state=State.SUCCEEDED).acount() == 400


@pytest.mark.long
async def test_a_gateway_that_is_told_to_stop_stops(
    play: Play, own_stack: Stack, upstream: Recorder
) -> None:
    own_stack.env |= {"COUNTERSIGN_STOP_WITHIN_S": "5"}
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    asking = asyncio.create_task(agent.call("rec.hang", token="t"))
    await until_running(upstream)

    await asyncio.to_thread(own_stack.agents.stop)

    with contextlib.suppress(aiohttp.ClientError):
        assert (await asking).body == b""
    call = await Call.objects.aget()
    assert (call.state, call.executed) == (State.UNKNOWN, "unknown")
