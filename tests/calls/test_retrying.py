"""A call that was lost is sent again only where an operator said that this does no harm; one that
was certainly not sent may always try again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from audit.models import Entry
from calls import services
from calls.models import Call
from calls.record.states import Executed, State
from policies.models import Effect
from registry.models import Tool
from tests.calls.flaky import Flaky
from tests.gateway.agent import Agent
from tests.gateway.conftest import AddRule, Play, the_call, until
from tests.processes import Stack

Mark = Callable[..., Awaitable[None]]
BACK = [(State.RUNNING, State.QUEUED), (State.QUEUED, State.RUNNING)]


@pytest.fixture
def agent(play: Play, stack: Stack) -> Agent:
    assert stack.worker
    return play("2025-11-25")


@pytest.fixture
def mark(rule: AddRule) -> Mark:
    async def mark(**marks: Any) -> None:
        await Tool.objects.filter(name="echo").aupdate(**marks)
        # By its return every process goes by what was marked, too.
        await rule(Effect.ALLOW, f"nothing.{marks}"[:60])

    return mark


async def moves() -> list[tuple[str, str]]:
    call = await the_call()
    entries = Entry.objects.of_call(call.pk).filter(seq__gt=1)
    return [pair async for pair in entries.values_list("from_state", "to_state")]


async def ended() -> Call:
    async def look() -> Call | None:
        return await Call.objects.filter(finished_at__isnull=False).afirst()

    call: Call = await until(look, seconds=30)
    return call


@pytest.mark.long
@pytest.mark.parametrize("mode", [Tool.Mode.INLINE, Tool.Mode.BACKGROUND])
async def test_a_lost_call_of_a_safe_tool_is_tried_again(
    agent: Agent, upstream: Flaky, mark: Mark, mode: str
) -> None:
    await mark(mode=mode, safe_to_repeat=True)
    upstream.breaks = 1

    reply = await agent.call("rec.echo", {"text": "hello"})

    assert reply.text == "hello"
    call = await the_call()
    assert (call.state, call.fence, call.executed) == (State.SUCCEEDED, 2, Executed.YES)
    assert upstream.keys == [str(call.pk)] * 2, "the server can tell that it is the same call"
    assert (await moves())[-3:-1] == BACK


async def test_no_other_call_is_sent_twice(agent: Agent, upstream: Flaky, mark: Mark) -> None:
    await mark(mode=Tool.Mode.BACKGROUND)
    upstream.breaks = 1

    reply = await agent.call("rec.echo", {"text": "hello"})

    call = await the_call()
    assert (call.state, call.fence, call.executed) == (State.UNKNOWN, 1, Executed.UNKNOWN)
    assert upstream.keys == [None]
    assert "Do not repeat it" in reply.text


@pytest.mark.long
async def test_three_attempts_are_all(agent: Agent, upstream: Flaky, mark: Mark) -> None:
    await mark(mode=Tool.Mode.BACKGROUND, safe_to_repeat=True)
    upstream.breaks = 10

    await agent.call("rec.echo", {"text": "hello"})

    call = await ended()
    assert (call.state, call.fence, call.executed) == (State.FAILED, 3, Executed.UNKNOWN)
    assert len(upstream.calls) == 3


@pytest.mark.long
async def test_a_call_that_was_not_sent_tries_again_with_any_tool(
    agent: Agent, upstream: Flaky, mark: Mark
) -> None:
    await mark(mode=Tool.Mode.BACKGROUND)
    with upstream.away():
        asking = asyncio.create_task(agent.call("rec.echo", {"text": "hello"}))
        await until(Call.objects.filter(state=State.QUEUED, fence=1).aexists)
    reply = await asking

    assert reply.text == "hello"
    call = await the_call()
    assert (call.state, call.executed) == (State.SUCCEEDED, Executed.YES)
    assert len(upstream.calls) == 1


async def test_an_agent_that_waits_hears_at_once_that_nothing_was_sent(
    agent: Agent, upstream: Flaky, mark: Mark
) -> None:
    await mark(mode=Tool.Mode.INLINE)
    with upstream.away():
        await agent.call("rec.echo", {"text": "hello"})

    call = await the_call()
    assert (call.state, call.fence, call.executed) == (State.FAILED, 1, Executed.NO)


@pytest.mark.parametrize("mode", [Tool.Mode.INLINE, Tool.Mode.BACKGROUND])
async def test_what_its_server_refused_is_never_sent_again_by_itself(
    agent: Agent, upstream: Flaky, mark: Mark, mode: str
) -> None:
    await mark(mode=mode, safe_to_repeat=True)
    upstream.refusals = 1

    reply = await agent.call("rec.echo", {"text": "hello"})

    call = await ended()
    assert (call.state, call.fence, call.executed) == (State.FAILED, 1, Executed.REPORTED)
    assert call.outcome == "Refused by the server (HTTP 429): it asks to slow down."
    assert call.outcome in reply.text
    assert reply.result["_meta"]["countersign/executed"] == "reported"
    assert reply.result["_meta"]["countersign/refusal"]["try_again"] == "later"
    assert len(upstream.calls) == 1


@pytest.mark.long
@pytest.mark.parametrize(("status", "attempts"), [(401, 1), (403, 1), (503, 3)])
async def test_a_refused_greeting_is_tried_again_only_if_that_may_pass(
    agent: Agent, upstream: Flaky, mark: Mark, status: int, attempts: int
) -> None:
    await mark(mode=Tool.Mode.BACKGROUND)
    upstream.turns_away = status

    await agent.call("rec.echo", {"text": "hello"})

    call = await ended()
    assert (call.state, call.fence, call.executed) == (State.FAILED, attempts, Executed.NO)
    assert f"could not be greeted. Refused by the server (HTTP {status})" in call.outcome
    assert upstream.calls == []


@pytest.mark.long
async def test_a_call_between_two_attempts_is_not_said_to_be_unsent(
    agent: Agent, upstream: Flaky, mark: Mark
) -> None:
    await mark(mode=Tool.Mode.BACKGROUND, safe_to_repeat=True)
    upstream.breaks = 10

    async def between() -> Call | None:
        return await Call.objects.filter(state=State.QUEUED, fence=2).afirst()

    message = await agent.message(
        "tools/call", {"name": "rec.echo", "arguments": {"text": "hello"}}
    )
    async with agent.open(message):
        call = await until(between)
        agent_row = (await the_call()).agent
        assert await sync_to_async(services.cancel)(call.pk, by=agent_row.actor)

    call = await the_call()
    assert (call.state, call.executed) == (State.CANCELLED, Executed.UNKNOWN)
    assert "between two attempts" in call.outcome


@pytest.mark.long
async def test_a_tool_that_is_no_longer_safe_is_not_tried_again(
    agent: Agent, upstream: Flaky, mark: Mark
) -> None:
    await mark(mode=Tool.Mode.BACKGROUND, safe_to_repeat=True)
    upstream.breaks = 10

    async def between() -> Call | None:
        return await Call.objects.filter(state=State.QUEUED, fence=2).afirst()

    message = await agent.message(
        "tools/call", {"name": "rec.echo", "arguments": {"text": "hello"}}
    )
    async with agent.open(message):
        await until(between)
        await mark(safe_to_repeat=False)
        call = await ended()

    assert (call.state, call.executed) == (State.SUPERSEDED, Executed.UNKNOWN)
    assert len(upstream.calls) == 2
