"""Servers that make a task of a call: it is followed to its end, by whoever lives to do so."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes
from audit.models import Entry
from audit.services import Actor
from calls import services as calls_services
from calls.models import Call
from calls.queue.claiming import claim
from calls.queue.upstream_tasks import take_over
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.models import Tool, Toolset
from tests.calls import rows
from tests.conftest import person
from tests.console import scenery
from tests.gateway.agent import TASKS
from tests.gateway.conftest import Play, add_rule, the_call, until
from tests.processes import Stack
from tests.upstreams.recorder import running
from tests.upstreams.tasking import Tasking

running_recorder = running(Tasking)


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
    upstream.otherwise = "task"
    upstream.release()

    reply = await play().call("rec.hang")

    assert reply.text == "done"
    call = await the_call()
    assert (call.state, '"id":"task-1"' in call.upstream_task) == (State.SUCCEEDED, True)
    assert call.progress_message == "" or call.progress_message == "Counting passengers."


@pytest.mark.long
async def test_what_its_server_says_of_it_is_shown(
    toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Tasking
) -> None:
    assert stack.worker
    await sync_to_async(rows.queue)(scout, bob, "hang")

    async def shown() -> bool:
        return (await the_call()).progress_message == "Counting passengers."

    await until(shown)
    upstream.release()
    await ended(State.SUCCEEDED)


@pytest.mark.long
async def test_one_that_wants_input_is_told_to_stop_and_the_call_says_why(
    toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Tasking
) -> None:
    assert stack.worker
    upstream.says = "input_required"
    await sync_to_async(rows.queue)(scout, bob, "hang")

    call = await ended(State.FAILED)

    assert call.outcome == (
        "The server asked for input (“How many bags?”), which cannot be given here. It confirmed "
        "that it stopped."
    )
    assert call.executed == "unknown"
    assert "tasks/cancel" in upstream.about_tasks


async def test_a_short_task_is_not_waited_for_as_long_as_its_server_wishes(
    play: Play, upstream: Tasking
) -> None:
    upstream.otherwise = "task"
    # Longer than any test waits.
    upstream.poll_ms = 600_000
    upstream.release()

    async with asyncio.timeout(20):
        reply = await play().call("rec.hang")

    assert reply.text == "done"


@pytest.mark.parametrize(
    ("ended_at", "took_s"),
    [
        ("2026-01-01T00:00:00.040Z", 0.04),
        # It cannot have taken longer than it was waited for, less than nothing, or no time at all.
        ("2026-01-01T01:00:00Z", None),
        ("2025-01-01T00:00:00Z", None),
        ("yesterday", None),
        ("2026-01-01T00:00:00.040", None),
    ],
)
async def test_how_long_a_task_took_is_its_servers_to_say_where_that_can_be(
    play: Play, upstream: Tasking, ended_at: str, took_s: float | None
) -> None:
    upstream.otherwise, upstream.ended_at = "task", ended_at
    upstream.release()

    assert (await play().call("rec.hang")).text == "done"

    call = await the_call()
    assert json.loads(call.upstream_task)["took_s"] == (
        None if took_s is None else pytest.approx(took_s)
    )


async def test_what_was_seen_running_did_not_end_before(play: Play, upstream: Tasking) -> None:
    upstream.otherwise, upstream.ended_at = "task", "2026-01-01T00:00:00.001Z"
    asked = asyncio.create_task(play().call("rec.hang"))

    async def looked() -> bool:
        return upstream.about_tasks.count("tasks/get") > 2

    await until(looked)
    upstream.release()

    assert (await asked).text == "done"
    assert json.loads((await the_call()).upstream_task)["took_s"] is None


async def test_a_server_that_tells_how_its_task_goes_on_is_listened_to(
    play: Play, upstream: Tasking
) -> None:
    upstream.otherwise, upstream.tells, upstream.poll_ms = "task", True, 600_000
    asked = asyncio.create_task(play().call("rec.hang"))

    async def listened() -> bool:
        return any(r.message["method"] == "subscriptions/listen" for r in upstream.received)

    await until(listened)
    looked = upstream.about_tasks.count("tasks/get")
    upstream.release()

    assert (await asked).text == "done"
    (listening,) = [r for r in upstream.received if "listen" in r.message["method"]]
    assert listening.message["params"]["notifications"] == {"taskIds": ["task-1"]}
    # Once when it began to tell, and once when it told.
    assert upstream.about_tasks.count("tasks/get") - looked <= 3


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
async def test_it_is_cancelled_where_it_runs(
    toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Tasking
) -> None:
    assert stack.worker
    (call_id,) = await sync_to_async(rows.queue)(scout, bob, "hang")
    await followed(upstream)

    await sync_to_async(calls_services.cancel)(call_id, by=Actor("person", bob.pk, "bob"))

    await ended(State.CANCELLED)
    assert "tasks/cancel" in upstream.about_tasks


@pytest.mark.long
async def test_a_task_that_its_server_has_forgotten_is_unknown(
    toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Tasking
) -> None:
    assert stack.worker
    await sync_to_async(rows.queue)(scout, bob, "hang")
    await followed(upstream)

    upstream.says = "cancelled"

    assert "cancelled its task by itself" in (await ended(State.UNKNOWN)).outcome


FORMS: dict[str, Any] = {**TASKS, "elicitation": {}}


async def wanted(agent: Any, task: str) -> dict[str, Any]:
    async def asked() -> Any:
        result = (await agent.ask("tasks/get", {"taskId": task})).result
        return result if result["status"] == "input_required" else None

    found: dict[str, Any] = await until(asked)
    return found


async def test_what_it_asks_is_passed_on_to_an_agent_that_can_answer(
    play: Play, stack: Stack, upstream: Tasking
) -> None:
    assert stack.worker
    await Tool.objects.filter(name="hang").aupdate(mode=Tool.Mode.BACKGROUND)
    upstream.says = "input_required"
    agent = play(capabilities=FORMS)
    made = await agent.call("rec.hang")
    task = made.result["taskId"]

    found = await wanted(agent, task)

    (request,) = found["inputRequests"].values()
    assert request["params"]["message"] == "How many bags?"
    # One that has shown no forms with this request is not asked.
    plain = await play(capabilities=TASKS).ask("tasks/get", {"taskId": task})
    assert plain.result["status"] == "working"

    answer = {"action": "accept", "content": {"bags": 2}}
    params = {"taskId": task, "inputResponses": {"bags": answer, "other": {}, "bad": 7}}
    told = await agent.ask("tasks/update", params)
    later = {"taskId": task, "inputResponses": {"bags": {"action": "decline"}}}
    await agent.ask("tasks/update", later)

    assert told.result == {"resultType": "complete"}

    async def arrived() -> bool:
        return bool(upstream.answers)

    await until(arrived)
    assert upstream.answers == {"bags": answer}
    upstream.release()
    call = await ended(State.SUCCEEDED)
    asked, given = [
        entry
        async for entry in Entry.objects.filter(
            call_id=call.pk, action__startswith="call.input"
        ).order_by("id")
    ]
    assert (asked.action, asked.reason) == ("call.input_asked", "How many bags?")
    assert (given.action, given.actor, given.details["said"]) == (
        "call.input_given",
        "scout",
        "accept",
    )


async def test_another_agent_answers_nothing(
    play: Play, stack: Stack, upstream: Tasking, toolset: Toolset, bob: User
) -> None:
    assert stack.worker
    await Tool.objects.filter(name="hang").aupdate(mode=Tool.Mode.BACKGROUND)
    upstream.says = "input_required"
    agent = play(capabilities=FORMS)
    task = (await agent.call("rec.hang")).result["taskId"]
    await wanted(agent, task)

    @sync_to_async
    def another() -> str:
        other = accounts.create_agent("other", owner=bob, by=bob)
        services.assign(toolset, other, by=bob)
        return accounts.issue_token(other, by=bob)

    thief = play(token=await another(), capabilities=FORMS)
    params = {"taskId": task, "inputResponses": {"bags": {"action": "accept"}}}
    refused = await thief.ask("tasks/update", params)

    assert refused.error["code"] == -32602
    assert (await wanted(agent, task))["status"] == "input_required"
    await agent.ask("tasks/cancel", {"taskId": task})
    await ended(State.CANCELLED)
    assert upstream.answers == {}


ASKED, TASK = '{"round":1,"asked":{}}', '{"id":"task-1","modern":true,"poll_s":1}'


@pytest.fixture
def lost(toolset: Toolset, scout: Agent, bob: User) -> Iterator[UUID]:
    """A call whose server asked its agent something; whoever ran it is gone. Not committed, or a
    worker that another test started takes it over."""
    with transaction.atomic():
        (call_id,) = rows.queue(scout, bob, "hang")
        assert claim(call_id, owner="one") is not None
        past = timezone.now() - timedelta(hours=1)
        Call.objects.filter(pk=call_id).update(upstream_task=ASKED, lease_until=past)
        yield call_id


@pytest.mark.django_db
def test_who_takes_it_over_knows_that_it_was_cancelled(lost: UUID, bob: User, olga: User) -> None:
    calls_services.cancel(lost, by=Actor("person", bob.pk, "bob"))
    freezes.begin(by=olga, reason="Odd mails go out.")

    taken = take_over(owner="another")

    assert taken is not None
    assert taken.is_cancelled


def other_definition(bob: User) -> None:
    other = Tool.objects.get(name="echo").latest
    Tool.objects.filter(name="hang").update(published=other, latest=other)


def forbidden(bob: User) -> None:
    add_rule(Effect.DENY, "hang")


def asked_about(bob: User) -> None:
    add_rule(Effect.ASK, "hang")


@pytest.mark.long
@pytest.mark.django_db
@pytest.mark.parametrize("change", [other_definition, forbidden, asked_about])
def test_what_changed_since_is_not_sent_with_the_agents_answers(
    lost: UUID, bob: User, change: Callable[[User], None]
) -> None:
    change(bob)

    assert take_over(owner="another") is None
    assert Call.objects.get(pk=lost).upstream_task == ""


@pytest.mark.django_db
def test_answers_wait_for_the_end_of_an_emergency_stop(lost: UUID, olga: User) -> None:
    stop = freezes.begin(by=olga, reason="Odd mails go out.")
    assert take_over(owner="another") is None
    assert Call.objects.get(pk=lost).upstream_task == ASKED

    ada = person("ada", Role.ADMINISTRATOR)
    freezes.end(stop, by=ada, why="They stopped.")

    assert take_over(owner="another") is not None


@pytest.mark.django_db
def test_a_task_is_followed_during_an_emergency_stop(lost: UUID, olga: User) -> None:
    Call.objects.filter(pk=lost).update(upstream_task=TASK)
    freezes.begin(by=olga, reason="Odd mails go out.")

    assert take_over(owner="another") is not None


@pytest.mark.django_db
def test_a_lost_call_that_was_cancelled_is_not_tried_again(
    toolset: Toolset, scout: Agent, bob: User, settings: Any
) -> None:
    settings.LEASE_S = 0
    Tool.objects.filter(name="hang").update(safe_to_repeat=True)
    (call_id,) = rows.queue(scout, bob, "hang")
    assert claim(call_id, owner="one") is not None
    calls_services.cancel(call_id, by=Actor("person", bob.pk, "bob"))

    calls_services.end_the_lost()

    call = Call.objects.get(pk=call_id)
    assert (call.state, call.executed) == (State.CANCELLED, "unknown")


@pytest.mark.django_db
@pytest.mark.parametrize(("confirmed", "state"), [(True, State.CANCELLED), (False, State.UNKNOWN)])
def test_a_lost_call_that_only_reads_and_was_cancelled_leaves_nothing_to_find_out(
    scout: Agent, bob: User, olga: User, settings: Any, *, confirmed: bool, state: State
) -> None:
    settings.LEASE_S = 0
    add_rule(Effect.ALLOW, "*")
    add = scenery.offered(scout, scenery.server("sums", olga, scenery.ADD).tools.get())
    Tool.objects.filter(pk=add.pk).update(confirmed_read_only=confirmed)
    call_id = scenery.call(scout, add, {"a": 1, "b": 2}, State.QUEUED)
    assert claim(call_id, owner="one") is not None
    calls_services.cancel(call_id, by=Actor("person", bob.pk, "bob"))

    calls_services.end_the_lost()

    assert Call.objects.get(pk=call_id).state == state
