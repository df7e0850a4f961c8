"""A stream of 2025-11-25 that breaks, and a client that comes back for the rest."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from accounts.models import User
from approvals.models import Approval
from calls.models import Call
from policies.models import Effect
from tests.gateway.agent import LEGACY, MODERN, Agent
from tests.gateway.conftest import AddRule, Play, decide
from tests.processes import Stack
from tests.upstreams.library import Library
from tests.upstreams.recorder import DONE, Received, Recorder, _event, _reply, running

pytestmark = pytest.mark.django_db(transaction=True)

ID = "a string, and not a number"


class Slow(Recorder):
    """Says one step of "steps", and the rest when it is released."""

    async def _steps(self, received: Received, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        token = received.message["params"]["_meta"].get("progressToken")
        for step in (1, 2, 3):
            params = {"progressToken": token, "progress": step, "total": 3, "message": f"#{step}"}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            await send(_event(json.dumps(note).encode(), more=True))
            while not self._released.is_set():
                await asyncio.sleep(0.01)
        await send(_event(_reply(received, DONE), more=False))


running_recorder = running(Slow)


@dataclass
class Event:
    id: str
    retry: str
    data: Any

    @classmethod
    def of(cls, block: str) -> "Event":
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        data = fields.get("data", "")
        return cls(fields.get("id", ""), fields.get("retry", ""), json.loads(data or "null"))

    @property
    def step(self) -> Any:
        told = self.data or {}
        return told["params"]["progress"] if "method" in told else None


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    assert response.status == 200, await response.text()
    block = ""
    async for line in response.content:
        block += line.decode()
        if not line.strip():
            if "data:" in block:
                yield Event.of(block)
            block = ""


async def until_step(agent: Agent, tool: str, arguments: Any = None) -> list[Event]:
    """What is told until the first progress; then the stream breaks."""
    params = {"name": tool, "arguments": arguments or {}}
    message = await agent.message("tools/call", params, request_id=ID, token="t")
    message["params"]["_meta"] = {"progressToken": "t"}
    told = []
    async with agent.open(message) as response:
        async for event in events(response):
            told.append(event)
            if event.step is not None:
                break
    return told


async def begun(agent: Agent, method: str, params: dict[str, Any]) -> Event:
    """The first event; then the stream breaks."""
    message = await agent.message(method, params)
    async with agent.open(message) as response:
        return await anext(events(response))


@contextlib.asynccontextmanager
async def back(agent: Agent, event_id: str) -> AsyncIterator[aiohttp.ClientResponse]:
    headers = {"Authorization": f"Bearer {agent.token}", "Accept": "text/event-stream"}
    headers |= agent.headers({}) | {"Last-Event-ID": event_id}
    async with agent.http.get(agent.url, headers=headers) as response:
        yield response


async def rest(agent: Agent, event_id: str) -> list[Event]:
    async with back(agent, event_id) as response:
        return [event async for event in events(response)]


async def test_who_comes_back_gets_what_was_missed_and_nothing_twice(
    play: Play, upstream: Slow
) -> None:
    agent = play(LEGACY[0])
    primer, first = await until_step(agent, "rec.steps")
    assert (bool(primer.id), primer.retry, primer.data) == (True, "1000", None)
    assert first.step == 1
    upstream.release()

    after, before = await rest(agent, first.id), await rest(agent, primer.id)

    assert 1 not in [event.step for event in after]
    assert after[-1].data["id"] == ID
    assert after[-1].data["result"]["content"] == [{"type": "text", "text": "done"}]
    # It ended long since: of its steps the last that was written down is known.
    assert len([event.step for event in before if event.step]) == 1
    assert before[-1].data == after[-1].data
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_it_may_be_another_process(play: Play, upstream: Slow, own_stack: Stack) -> None:
    assert own_stack.agents
    agent = play(LEGACY[0])
    told = await until_step(agent, "rec.steps")
    elsewhere = play(LEGACY[0], at_stack=own_stack, session=agent.session)

    async with back(elsewhere, told[-1].id) as response:
        upstream.release()
        last = [event async for event in events(response)][-1]

    assert last.data["id"] == ID
    assert last.data["result"]["content"] == [{"type": "text", "text": "done"}]


@pytest.mark.long
async def test_a_call_that_waits_for_people_can_be_come_back_for(
    play: Play, rule: AddRule, stack: Stack, upstream: Slow, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(LEGACY[0])
    told = await until_step(agent, "rec.echo", {"text": "hello"})
    assert await Approval.objects.acount() == 1

    waiting = asyncio.create_task(rest(agent, told[-1].id))
    await decide(alice)

    said = (await waiting)[-1].data
    assert (said["id"], said["result"]["content"][0]["text"]) == (ID, "hello")
    assert await Call.objects.filter(unheard_at=None).acount() == 1


async def test_who_waits_for_an_outcome_can_come_back_too(play: Play, upstream: Slow) -> None:
    agent = play(LEGACY[0])
    await until_step(agent, "rec.steps")
    awaited = {"call_id": str((await Call.objects.aget()).pk)}
    primer, first = await until_step(agent, "countersign.await_call", awaited)
    assert (bool(primer.id), first.step) == (True, 1)
    upstream.release()

    after = await rest(agent, first.id)

    assert 1 not in [event.step for event in after]
    assert (after[-1].data["id"], after[-1].data["result"]["content"][0]["text"]) == (ID, "done")
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_what_was_read_comes_back_as_the_result_of_a_tool(
    play: Play, rule: AddRule, stack: Stack, library: Library, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "resources/read")
    agent = play(LEGACY[0])
    await begun(agent, "resources/read", {"uri": "notes://today"})
    arguments = {"call_id": str((await Call.objects.aget()).pk)}
    name = {"name": "countersign.await_call", "arguments": arguments}
    # Another program of the agent: this one would be told sooner to come back.
    agent = play(LEGACY[0], client="other")
    primer = await begun(agent, "tools/call", name)
    await decide(alice)

    said = (await rest(agent, primer.id))[-1].data

    assert said["result"]["content"][0]["resource"]["text"] == "This is notes://today."


async def test_an_event_opens_nothing_but_its_own_stream_in_its_own_session(
    play: Play, upstream: Slow
) -> None:
    agent, other = play(LEGACY[0]), play(LEGACY[0])
    told = await until_step(agent, "rec.steps")
    upstream.release()
    await other.begin()

    for asking, event_id in (
        (other, told[-1].id),
        (agent, told[-1].id[:-1]),
        (agent, "7"),
        (agent, "ä"),
    ):
        async with back(asking, event_id) as response:
            assert response.status == 400
            assert (await response.json())["error"]["code"] == -32600


@pytest.mark.parametrize("revision", [MODERN, *LEGACY[1:]])
async def test_other_revisions_name_no_events(revision: str, play: Play, upstream: Slow) -> None:
    upstream.release()

    reply = await play(revision).call("rec.steps", token="t")

    assert reply.is_stream
    assert b"id: " not in reply.body
    assert reply.text == "done"
