"""An agent hears how far its call is, whatever its server and its client speak."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from calls.models import Call
from registry.models import Toolset
from tests.calls.test_legacy_upstream_tasks import begun, progress
from tests.gateway.agent import LEGACY, MODERN, TASKS, Agent, Reply
from tests.gateway.conftest import Play, until
from tests.gateway.test_listening import events, following, get_stream, listening
from tests.processes import Stack
from tests.upstreams.recorder import running
from tests.upstreams.tasking_legacy import LegacyTasking

pytestmark = pytest.mark.django_db(transaction=True)

running_recorder = running(LegacyTasking)
OF_TASKS = "2025-11-25"


@pytest.fixture(autouse=True)
def _worker(http: aiohttp.ClientSession, toolset: Toolset, stack: Stack) -> None:
    assert stack.worker
    http._timeout = aiohttp.ClientTimeout(total=15)


async def about(agent: Agent, method: str, task: str) -> Reply:
    return await agent.ask(f"tasks/{method}", {"taskId": task})


async def says(agent: Agent, task: str, *words: str) -> dict[str, Any]:
    async def said() -> Any:
        seen = (await about(agent, "get", task)).result
        return seen if all(word in seen["statusMessage"] for word in words) else None

    found: dict[str, Any] = await until(said)
    return found


async def test_a_task_says_what_its_server_says(play: Play, upstream: LegacyTasking) -> None:
    agent = play(capabilities=TASKS)
    upstream.says = "Waking up"
    task = (await agent.call("rec.work")).result["taskId"]
    await begun(upstream)

    seen = await says(agent, task, "Running now: “Waking up”; see http")
    assert seen["status"] == "working"
    upstream.said.append(progress(upstream, 3, "Third page"))
    await says(agent, task, "Running now: 3 of 10, “Third page”; see http")


async def test_who_listens_to_a_task_hears_how_far_it_is(
    play: Play, upstream: LegacyTasking
) -> None:
    agent = play(capabilities=TASKS)
    upstream.says = ""
    task = (await agent.call("rec.work")).result["taskId"]
    await begun(upstream)
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"taskIds": [task]})
        await following(heard)
        await following(heard)
        upstream.said.append(progress(upstream, 3, "Third page"))

        while "Third page" not in (await following(heard))["params"]["statusMessage"]:
            pass
        upstream.release()
        while (await following(heard))["params"]["status"] != "completed":
            pass


@pytest.mark.parametrize("revision", [MODERN, *LEGACY])
async def test_words_without_figures_are_progress_that_hardly_rises(
    play: Play, upstream: LegacyTasking, revision: str
) -> None:
    upstream.says = "Waking up"
    asked = asyncio.create_task(play(revision).call("rec.work", token="t"))
    await begun(upstream)
    await until(lambda: _polled(upstream))
    upstream.said.append(progress(upstream, 3, "Third page"))

    async def shown() -> bool:
        return await Call.objects.filter(progress=3).aexists()

    await until(shown)
    upstream.release()

    *steps, _answer = (await asked).messages
    told = [(step["params"]["progress"], step["params"]["message"]) for step in steps]
    assert told[0][1] == "Waking up"
    assert 0 < told[0][0] < 0.001
    assert (3, "Third page") in told
    assert [done for done, _ in told] == sorted({done for done, _ in told})


async def _polled(upstream: LegacyTasking) -> bool:
    return upstream.about_tasks.count("tasks/get") > 1


async def begin_with_token(agent: Agent) -> str:
    reply = await agent.call("rec.work", token="mine", task={"ttl": 60_000})
    task: str = reply.result["task"]["taskId"]
    return task


@pytest.mark.long
async def test_progress_comes_on_the_stream_of_the_tasks_result(
    play: Play, upstream: LegacyTasking
) -> None:
    agent = play(OF_TASKS)
    upstream.says = ""
    task = await begin_with_token(agent)
    await begun(upstream)
    message = await agent.message("tasks/result", {"taskId": task})
    async with agent.open(message) as response:
        heard = events(response)
        upstream.said.append(progress(upstream, 3, "Third page"))
        step = await following(heard)
        upstream.release()
        answer = await following(heard)

    assert step["method"] == "notifications/progress"
    assert step["params"] == {
        "progressToken": "mine",
        "progress": 3,
        "total": 10,
        "message": "Third page",
    }
    assert answer["result"]["content"][0]["text"] == "done"


@pytest.mark.long
async def test_progress_comes_beside_the_session_from_any_process(
    play: Play, own_stack: Stack, upstream: LegacyTasking
) -> None:
    assert own_stack.agents
    agent = play(OF_TASKS)
    await agent.begin()
    elsewhere = play(OF_TASKS, at_stack=own_stack)
    elsewhere.session = agent.session
    upstream.says = ""
    async with AsyncExitStack() as on:
        heard = await get_stream(elsewhere, on)
        await begin_with_token(agent)
        await begun(upstream)
        upstream.said.append(progress(upstream, 3, "Third page"))
        step = await following(heard)

    assert step["params"]["progressToken"] == "mine"
    assert step["params"]["message"] == "Third page"


async def test_a_cancelled_task_does_not_say_that_it_runs(
    play: Play, upstream: LegacyTasking
) -> None:
    agent = play(OF_TASKS)
    task = await begin_with_token(agent)
    await begun(upstream)

    cancelled = (await about(agent, "cancel", task)).result
    seen = (await about(agent, "get", task)).result

    for said in (cancelled, seen):
        assert said["status"] == "cancelled"
        assert "Cancelled" in said["statusMessage"]
        assert "Running" not in said["statusMessage"]
