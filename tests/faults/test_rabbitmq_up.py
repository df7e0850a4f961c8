"""A whole installation of `up` with RabbitMQ for its workers: progress, cancellation, approval and
scheduled jobs go on with it, and calls also without it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from config.probes import PLACES
from tests.config.crossing import Stream
from tests.config.test_probes import answer, three_ports
from tests.faults.rabbit import IS_INSTALLED, Rabbit
from tests.faults.test_restore import Scene, scene, until
from tests.gateway.agent import Agent

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not IS_INSTALLED, reason="needs Debian's rabbitmq-server"),
]
MINUTES_MS = 120_000
# Of a job that beat sends once a minute (calls/tasks.py).
TALLIED = "SELECT id FROM calls_movetally"
STATES = "SELECT convert_from(arguments, 'UTF8')::json->>'nonce', state FROM calls_call"


@pytest.fixture
def folder() -> Iterator[Path]:
    """pytest's directories are for their owner only; PostgreSQL may run as another user."""
    with TemporaryDirectory(prefix="countersign-rabbitmq-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture
def rabbit(folder: Path) -> Iterator[Rabbit]:
    rabbit = Rabbit(folder / "rabbitmq")
    yield rabbit
    rabbit.close()


async def test_an_installation_works_with_rabbitmq_and_outlives_it(
    folder: Path, rabbit: Rabbit
) -> None:
    first = three_ports()
    env = {"BROKER_URL": rabbit.url, "COUNTERSIGN_PROBES": f"127.0.0.1:{first}"}

    def said(role: str) -> tuple[int, str]:
        return answer(first + PLACES[role], "/readyz")

    async with scene(folder, **env) as here:
        await until(lambda: {said("worker")[0], said("beat")[0]} == {200})
        await progress_is_told(here, "with it")
        await a_task_is_cancelled(here)
        await an_approved_call_is_sent(here, "approved with it")
        await until(lambda: bool(here.read(TALLIED)), seconds=150)

        rabbit.kill()
        await until(lambda: said("beat")[0] == 503, seconds=90)
        await progress_is_told(here, "without it")
        await an_approved_call_is_sent(here, "approved without it")

        await asyncio.to_thread(rabbit.start)
        await until(lambda: said("beat")[0] == 200, seconds=90)
        await an_approved_call_is_sent(here, "approved with it again")
        assert max(here.received.values()) == 1


async def progress_is_told(here: Scene, nonce: str) -> None:
    agent = Agent(here.http, here.agent.url, here.token, "2025-11-25")
    stream = Stream(agent, nonce)
    ended = await stream.read()
    assert ended.data["result"]["content"][0]["text"] == "done"
    assert len(stream.steps) > 1


async def a_task_is_cancelled(here: Scene) -> None:
    agent = here.agent
    task = (await agent.call("up.later", {"nonce": "cancelled", "ms": MINUTES_MS})).result["taskId"]
    await until(lambda: bool(here.received["cancelled"]))
    await agent.ask("tasks/cancel", {"taskId": task})
    await until(lambda: state_of(here, "cancelled") in ("cancelled", "unknown"), seconds=20)


def state_of(here: Scene, nonce: str) -> Any:
    return dict(here.read(STATES))[nonce]


async def an_approved_call_is_sent(here: Scene, nonce: str) -> None:
    await here.approve(await here.ask("held", nonce))
    await until(lambda: state_of(here, nonce) == "succeeded")
