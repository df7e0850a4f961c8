"""Servers of 2025-11-25 that run a call as a task: what it says and asks meanwhile gets through."""

import asyncio
from typing import Any

import aiohttp
import pytest

from calls.models import Call, LogLine
from calls.record.states import State
from tests.gateway.agent import LEGACY, MODERN, TASKS
from tests.gateway.conftest import Play, the_call, until
from tests.gateway.test_inputs import ANN, FORMS, converse
from tests.processes import Stack
from tests.upstreams.recorder import running
from tests.upstreams.tasking_legacy import LegacyTasking

pytestmark = pytest.mark.django_db(transaction=True)

running_recorder = running(LegacyTasking)


@pytest.fixture(autouse=True)
def _nobody_waits_for_ever(http: aiohttp.ClientSession, stack: Stack) -> None:
    assert stack.worker
    http._timeout = aiohttp.ClientTimeout(total=15)


def progress(upstream: LegacyTasking, done: int, message: str) -> tuple[str, dict[str, Any]]:
    said = {"progressToken": upstream.token, "progress": done, "total": 10, "message": message}
    return "notifications/progress", said


async def begun(upstream: LegacyTasking) -> None:
    async def followed() -> bool:
        return "tasks/result" in upstream.about_tasks

    await until(followed)


async def test_its_result_comes_when_it_is_there(play: Play, upstream: LegacyTasking) -> None:
    asked = asyncio.create_task(play().call("rec.work"))
    await begun(upstream)

    upstream.release()

    assert (await asked).text == "done"


@pytest.mark.parametrize("revision", [MODERN, *LEGACY[:2]])
async def test_what_it_asks_in_its_task_is_answered(
    play: Play, upstream: LegacyTasking, revision: str
) -> None:
    upstream.asks = True
    talking = asyncio.create_task(converse(play(revision, capabilities=FORMS), "rec.work"))

    async def answered() -> bool:
        return upstream.answer is not None

    await until(answered)
    upstream.release()

    talk = await talking
    assert upstream.answer == ANN
    assert [one["params"]["message"] for one in talk.asked] == ["What is your name?"]
    assert talk.last["result"]["content"][0]["text"] == "done"


async def test_progress_and_log_of_its_task_reach_row_and_agent(
    play: Play, upstream: LegacyTasking
) -> None:
    upstream.says = ""
    asked = asyncio.create_task(play().call("rec.work", token="t"))
    await begun(upstream)

    upstream.said.append(progress(upstream, 3, "Third page"))
    upstream.said.append(("notifications/message", {"level": "info", "data": "page 3 read"}))

    async def kept() -> bool:
        return await LogLine.objects.filter(text="page 3 read").aexists()

    await until(kept)

    async def shown() -> bool:
        return await Call.objects.filter(progress=3, progress_message="Third page").aexists()

    await until(shown)
    upstream.release()
    *steps, _answer = (await asked).messages
    assert [step["params"]["message"] for step in steps] == ["Third page"]


async def test_one_that_nobody_can_answer_is_told_to_stop(
    play: Play, upstream: LegacyTasking
) -> None:
    upstream.status, upstream.says = "input_required", "How many?"

    reply = await play(capabilities=TASKS).call("rec.work")
    assert reply.result["resultType"] == "task"

    async def ended() -> bool:
        return await Call.objects.filter(state=State.FAILED).aexists()

    await until(ended)
    assert "“How many?”" in (await the_call()).outcome
    assert "tasks/cancel" in upstream.about_tasks
