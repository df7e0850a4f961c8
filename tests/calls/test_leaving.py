"""A worker that is asked to stop takes nothing new, gives calls time, and says what it knows."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from asgiref.sync import sync_to_async

from accounts.models import Agent, User
from calls.models import Call
from calls.record.states import Executed, State
from registry.models import Tool, Toolset
from tests.calls import rows
from tests.calls.flaky import Flaky
from tests.gateway.conftest import the_call, until
from tests.processes import Running, Stack

QUICK = {"COUNTERSIGN_STOP_WITHIN_S": "1"}


@pytest.fixture
def quick(own_stack: Stack) -> Stack:
    own_stack.env |= QUICK
    return own_stack


async def queue(scout: Agent, bob: User, name: str = "hang", *, count: int = 1) -> None:
    await sync_to_async(rows.queue)(scout, bob, name, count=count)


async def arrived(upstream: Flaky) -> None:
    async def has() -> bool:
        return bool(upstream.calls)

    await until(has)


@sync_to_async
def stop(worker: Running) -> None:
    worker.process.terminate()
    worker.process.wait(20)


@pytest.mark.long
async def test_what_ends_in_time_ends_well(
    toolset: Toolset, own_stack: Stack, scout: Agent, bob: User, upstream: Flaky
) -> None:
    worker = own_stack.worker
    await queue(scout, bob)
    await arrived(upstream)

    worker.process.terminate()
    # It has been told, and waits for the call all the same.
    await until(sync_to_async(lambda: "Warm shutdown" in worker.text()))
    upstream.release()
    await sync_to_async(worker.process.wait)(20)

    assert (await the_call()).state == State.SUCCEEDED


@pytest.mark.long
async def test_what_does_not_is_unknown_at_once(
    toolset: Toolset, quick: Stack, scout: Agent, bob: User, upstream: Flaky
) -> None:
    worker = quick.worker
    await queue(scout, bob)
    await arrived(upstream)

    await stop(worker)

    call = await the_call()
    assert (call.state, call.executed) == (State.UNKNOWN, Executed.UNKNOWN)
    assert call.outcome == "The worker stopped while the call was running."


@pytest.mark.long
async def test_a_safe_one_is_done_by_the_next_worker(
    toolset: Toolset, quick: Stack, scout: Agent, bob: User, upstream: Flaky
) -> None:
    await Tool.objects.filter(name="hang").aupdate(safe_to_repeat=True)
    worker = quick.worker
    await queue(scout, bob)
    await arrived(upstream)
    await stop(worker)
    assert (await the_call()).state == State.QUEUED

    upstream.release()
    await sync_to_async(worker.start)()

    async def done() -> bool:
        return (await the_call()).state == State.SUCCEEDED

    await until(done)
    assert (await the_call()).fence == 2


async def test_what_it_has_not_begun_stays_queued(
    toolset: Toolset, quick: Stack, scout: Agent, bob: User, upstream: Flaky
) -> None:
    quick.env |= {"COUNTERSIGN_AGENT_LIMIT": "1"}
    worker = quick.worker
    await queue(scout, bob, count=3)
    await arrived(upstream)

    await stop(worker)

    states = sorted([state async for state in Call.objects.values_list("state", flat=True)])
    assert states == [State.QUEUED, State.QUEUED, State.UNKNOWN]
    assert len(upstream.calls) == 1


@pytest.fixture
def stuck(scout: Agent) -> Iterator[None]:
    """Every claim of scout's calls hangs, as on a lock that nobody lets go."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(71001, %s::int)", [scout.pk])
        yield


@pytest.mark.long
async def test_a_worker_that_takes_nothing_replaces_itself(
    toolset: Toolset, quick: Stack, scout: Agent, bob: User, stuck: None
) -> None:
    quick.env |= {"COUNTERSIGN_DEAF_AFTER_S": "3"}
    worker = quick.worker
    await queue(scout, bob, "echo")

    await sync_to_async(worker.process.wait)(40)

    assert "it starts anew" in worker.text()
    assert (await the_call()).state == State.QUEUED


@pytest.mark.long
async def test_a_worker_with_nothing_to_do_stays(
    toolset: Toolset, quick: Stack, scout: Agent, bob: User
) -> None:
    quick.env |= {"COUNTERSIGN_DEAF_AFTER_S": "0.6", "COUNTERSIGN_AGENT_LIMIT": "0"}
    worker = quick.worker
    # Waiting, but not allowed to start: nobody's fault.
    await queue(scout, bob, "echo")

    with pytest.raises(TimeoutError):
        await until(sync_to_async(lambda: worker.process.poll() is not None), seconds=3)
