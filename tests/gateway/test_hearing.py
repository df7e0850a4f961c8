"""What servers log while they run a call, on the stream of whoever wants to hear it."""

from typing import Any

import pytest

from accounts.models import User
from policies.models import Effect
from registry.models import Tool
from tests.gateway.agent import LEGACY, META, Reply
from tests.gateway.conftest import AddRule, Play, decide
from tests.gateway.test_resuming import back, events
from tests.processes import Stack
from tests.upstreams.chatty import Chatty
from tests.upstreams.recorder import running

LINES: list[dict[str, Any]] = [
    {"level": "debug", "data": "weighing"},
    {"level": "warning", "logger": "scales", "data": {"kg": 3}},
]

running_recorder = running(Chatty)


@pytest.fixture
def upstream(running_recorder: Chatty) -> Chatty:
    running_recorder.reset()
    running_recorder.release()
    return running_recorder


def heard(reply: Reply) -> list[Any]:
    return [m["params"] for m in reply.messages if m.get("method") == "notifications/message"]


@pytest.mark.parametrize(("level", "lines"), [("debug", LINES), ("info", LINES[1:]), ("alert", [])])
async def test_a_request_says_from_which_level_on(
    level: str, lines: list[Any], play: Play, upstream: Chatty
) -> None:
    reply = await play().call("rec.say", {"lines": LINES}, _meta={f"{META}logLevel": level})

    assert heard(reply) == lines
    assert reply.text == "done"
    assert upstream.calls[0].message["params"]["_meta"][f"{META}logLevel"] == level


async def test_who_says_nothing_hears_nothing(play: Play, upstream: Chatty) -> None:
    reply = await play().call("rec.say", {"lines": LINES})

    assert heard(reply) == []
    assert f"{META}logLevel" not in upstream.calls[0].message["params"]["_meta"]


async def test_a_level_that_there_is_not_is_refused(play: Play, upstream: Chatty) -> None:
    meta = {f"{META}logLevel": "loud"}

    refused = await play().call("rec.say", {"lines": []}, _meta=meta)

    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert upstream.calls == []


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_session_says_it_once(revision: str, play: Play, upstream: Chatty) -> None:
    agent, other = play(revision), play(revision)

    said = await agent.ask("logging/setLevel", {"level": "warning"})
    first = await agent.call("rec.say", {"lines": LINES})
    second = await agent.call("rec.say", {"lines": [*LINES, LINES[1]]})
    others = await other.call("rec.say", {"lines": []})

    assert said.result == {}
    assert heard(first) == LINES[1:]
    assert heard(second) == [LINES[1], LINES[1]]
    assert heard(others) == []
    wrong = await agent.ask("logging/setLevel", {"level": 3})
    assert wrong.error["code"] == -32602


@pytest.fixture
async def by_worker(play: Play, rule: AddRule, stack: Stack) -> None:
    assert stack.worker
    await Tool.objects.filter(name="say").aupdate(mode=Tool.Mode.BACKGROUND)
    # By its return the gateway knows what is above, too.
    await rule(Effect.ALLOW, "say")


async def test_what_a_worker_hears_is_told_as_well(
    play: Play, by_worker: None, upstream: Chatty
) -> None:
    agent = play(LEGACY[0])
    await agent.ask("logging/setLevel", {"level": "debug"})

    reply = await agent.call("rec.say", {"lines": LINES})

    assert heard(reply) == LINES
    assert reply.text == "done"
    assert upstream.calls[0].message["params"]["_meta"][f"{META}logLevel"] == "debug"


@pytest.mark.long
async def test_a_round_hears_what_was_logged_since(
    play: Play, rule: AddRule, stack: Stack, upstream: Chatty, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "say")
    meta, agent = {f"{META}logLevel": "warning"}, play()
    waits = await agent.call("rec.say", {"lines": LINES}, _meta=meta)
    await decide(alice)

    state = waits.result["requestState"]
    reply = await agent.call("rec.say", {"lines": LINES}, _meta=meta, requestState=state)

    assert heard(reply) == LINES[1:]
    assert reply.text == "done"


async def test_who_comes_back_to_a_stream_hears_each_line_once(
    play: Play, by_worker: None, upstream: Chatty
) -> None:
    agent = play(LEGACY[0])
    await agent.ask("logging/setLevel", {"level": "debug"})
    params = {"name": "rec.say", "arguments": {"lines": LINES}}
    message = await agent.message("tools/call", params)
    async with agent.open(message) as response:
        first = await anext(event async for event in events(response) if event.data)
    assert first.data["params"] == LINES[0]

    async with back(agent, first.id) as response:
        told = [event.data async for event in events(response) if event.data]

    assert [one["params"] for one in told[:-1]] == LINES[1:]
    assert told[-1]["result"]["content"] == [{"type": "text", "text": "done"}]
