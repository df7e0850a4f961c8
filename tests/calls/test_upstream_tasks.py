"""Servers that make a task of a call: it is followed to its end, by whoever lives to do so."""

from collections.abc import Iterator

import pytest
from asgiref.sync import sync_to_async

from accounts.models import Agent, User
from audit.models import Entry
from audit.services import Actor
from calls import services
from calls.models import Call
from calls.states import State
from registry.models import Toolset
from tests.calls import rows
from tests.gateway.conftest import Play, the_call, until
from tests.processes import Stack
from tests.upstreams.tasking import Tasking


@pytest.fixture(scope="module")
def running_recorder() -> Iterator[Tasking]:
    with Tasking() as recorder:
        yield recorder


@pytest.fixture
def upstream(running_recorder: Tasking) -> Tasking:
    running_recorder.reset()
    return running_recorder


async def followed(upstream: Tasking) -> None:
    async def asked() -> bool:
        return "tasks/get" in upstream.about_tasks

    await until(asked)


async def ended(state: State) -> Call:
    async def has() -> bool:
        return await Call.objects.filter(state=state).aexists()

    await until(has, seconds=20)
    return await the_call()


async def test_an_agent_waits_for_it_and_gets_its_result(play: Play, upstream: Tasking) -> None:
    upstream.release()

    reply = await play().call("rec.hang")

    assert reply.text == "done"
    call = await the_call()
    assert (call.state, '"id":"task-1"' in call.upstream_task) == (State.SUCCEEDED, True)
    assert call.progress_message == "" or call.progress_message == "Counting passengers."


async def test_what_its_server_says_of_it_is_shown(
    toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Tasking
) -> None:
    assert stack.worker
    upstream.says = "input_required"
    await sync_to_async(rows.queue)(scout, bob, "hang")

    async def shown() -> bool:
        said = (await the_call()).progress_message
        return said == "It waits for input that cannot be given here. Counting passengers."

    await until(shown)
    upstream.says = "working"
    upstream.release()
    await ended(State.SUCCEEDED)


async def test_another_worker_goes_on_with_it(
    toolset: Toolset, own_stack: Stack, scout: Agent, bob: User, upstream: Tasking
) -> None:
    own_stack.env |= {"COUNTERSIGN_LEASE_S": "2"}
    assert own_stack.worker
    await sync_to_async(rows.queue)(scout, bob, "hang")
    await followed(upstream)

    await sync_to_async(own_stack.worker.restart)()
    upstream.release()

    await ended(State.SUCCEEDED)
    assert len(upstream.calls) == 1
    assert await Entry.objects.filter(action="call.taken_over").acount() == 1


async def test_a_worker_that_is_asked_to_stop_hands_it_over(
    toolset: Toolset, own_stack: Stack, scout: Agent, bob: User, upstream: Tasking
) -> None:
    own_stack.env |= {"COUNTERSIGN_STOP_WITHIN_S": "0.5"}
    assert own_stack.worker
    await sync_to_async(rows.queue)(scout, bob, "hang")
    await followed(upstream)

    await sync_to_async(own_stack.worker.stop)()
    assert (await the_call()).state == State.RUNNING
    await sync_to_async(own_stack.worker.start)()
    upstream.release()

    await ended(State.SUCCEEDED)
    assert (len(upstream.calls), "tasks/cancel" in upstream.about_tasks) == (1, False)


async def test_it_is_cancelled_where_it_runs(
    toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Tasking
) -> None:
    assert stack.worker
    (call_id,) = await sync_to_async(rows.queue)(scout, bob, "hang")
    await followed(upstream)

    await sync_to_async(services.cancel)(call_id, by=Actor("person", bob.pk, "bob"))

    await ended(State.CANCELLED)
    assert "tasks/cancel" in upstream.about_tasks


async def test_a_task_that_its_server_has_forgotten_is_unknown(
    toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Tasking
) -> None:
    assert stack.worker
    await sync_to_async(rows.queue)(scout, bob, "hang")
    await followed(upstream)

    upstream.says = "cancelled"

    assert "cancelled its task by itself" in (await ended(State.UNKNOWN)).outcome
