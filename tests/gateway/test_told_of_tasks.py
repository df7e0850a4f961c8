"""A server is told that it may make a task of a call where whoever asked for that can follow one,
and nowhere else."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from accounts.models import User
from calls.record.states import State
from policies.models import Effect
from tests.gateway.agent import LEGACY, TASKS, Agent
from tests.gateway.conftest import AddRule, Play, decide, the_call, until
from tests.gateway.test_rest import Rest
from tests.gateway.test_trying import Open, window  # noqa: F401 a fixture
from tests.processes import ROOT, Stack
from tests.upstreams.recorder import Received, running
from tests.upstreams.tasking import EXTENSION, NEEDS_TASKS, Tasking

pytestmark = pytest.mark.django_db(transaction=True)

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

running_recorder = running(Tasking)


async def told(upstream: Tasking) -> bool:
    async def sent() -> Received | None:
        return upstream.calls[-1] if upstream.calls else None

    received: Received = await until(sent)
    declared = received.message["params"]["_meta"][CAPABILITIES]
    assert declared in ({}, TASKS)
    return EXTENSION in declared.get("extensions", {})


async def test_agents_that_declare_tasks(play: Play, upstream: Tasking) -> None:
    for _ in range(2):
        # The second one's first row is written like the first one's.
        for capabilities in (TASKS, {}):
            await play(capabilities=capabilities).call("rec.echo", {"text": "x"})
            assert await told(upstream) == bool(capabilities)


@pytest.mark.parametrize("revision", LEGACY)
async def test_agents_of_earlier_revisions(play: Play, upstream: Tasking, revision: str) -> None:
    await play(revision, capabilities=TASKS).call("rec.echo", {"text": "x"})

    assert not await told(upstream)


async def test_a_call_that_is_to_be_a_task_of_2025(
    play: Play, stack: Stack, upstream: Tasking
) -> None:
    assert stack.worker
    await play("2025-11-25").call("rec.echo", {"text": "x"}, task={})

    assert await told(upstream)


@pytest.mark.long
@pytest.mark.parametrize("capabilities", [TASKS, {}])
async def test_what_was_declared_holds_when_a_person_has_decided(
    play: Play,
    stack: Stack,
    rule: AddRule,
    alice: User,
    upstream: Tasking,
    capabilities: dict[str, Any],
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    await play(capabilities=capabilities).call("rec.echo", {"text": "x"})
    await decide(alice)

    assert await told(upstream) == bool(capabilities)


@pytest.fixture
def doors(
    play: Play,
    stack: Stack,
    http: aiohttp.ClientSession,
    scout_token: str,
    window: Open,  # noqa: F811
    bob: User,
) -> dict[str, Callable[[], Awaitable[object]]]:
    async def rest() -> None:
        assert stack.web
        await Rest(http, stack.web_url, scout_token).call("rec.say")

    async def command() -> None:
        assert stack.worker
        argv = [sys.executable, "manage.py", "call", "scout", "desk", "rec.say"]
        await asyncio.to_thread(
            subprocess.run, argv, cwd=ROOT, env=dict(os.environ), capture_output=True, check=True
        )

    async def tried() -> None:
        tab = await window(bob)
        await tab.submit("rec.say", await tab.open("rec.say"))

    return {"rest": rest, "command": command, "try": tried}


@pytest.mark.long
@pytest.mark.parametrize("door", ["rest", "command", "try"])
async def test_our_own_pages_and_rest_follow_tasks(
    doors: dict[str, Callable[[], Awaitable[object]]], upstream: Tasking, door: str
) -> None:
    await doors[door]()

    assert await told(upstream)


async def test_a_server_that_needs_tasks_says_so_itself(
    any_agent: Agent, upstream: Tasking
) -> None:
    upstream.otherwise = "refuse"

    reply = await any_agent.call("rec.hang")

    assert reply.error == NEEDS_TASKS
    assert reply.status == (400 if any_agent.revision not in LEGACY else 200)
    assert (await the_call()).state == State.FAILED


async def test_a_task_that_nobody_asked_for_is_followed(
    any_agent: Agent, upstream: Tasking
) -> None:
    upstream.otherwise = "task"
    upstream.release()

    reply = await any_agent.call("rec.hang")

    assert reply.text == "done"
    assert not await told(upstream)
    assert "tasks/get" in upstream.about_tasks
