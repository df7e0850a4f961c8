"""What an agent sees while a person decides, by what its client understands."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent as AgentRow
from accounts.models import User
from approvals.models import Approval
from calls.models import Call
from calls.record.states import State
from gateway.process.client_habits import ClientHabits
from gateway.protocol import handles
from policies.models import Effect
from registry import services
from registry.models import Tool, Toolset
from tests.gateway.agent import MODERN, TASKS, URLS, Agent
from tests.gateway.conftest import NEWEST, AddRule, Play, decide, decide_soon, the_call, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def asking(toolset: Toolset, stack: Stack, rule: AddRule) -> None:
    """Calls of "echo" and "hang" wait for a person; a worker runs what is approved."""
    assert stack.worker
    await rule(Effect.ASK, "echo", reason="Echoes are loud.")
    await rule(Effect.ASK, "hang")


@pytest.fixture
def agent(asking: None, play: Play) -> Agent:
    return play()


async def until_held() -> Call:
    async def held() -> Call | None:
        return await Call.objects.filter(state=State.HELD).afirst()

    found: Call = await until(held)
    return found


async def retry(agent: Agent, reply: Any, arguments: Any = None, **more: Any) -> Any:
    arguments = {"text": "x"} if arguments is None else arguments
    state = {"requestState": reply.result["requestState"]}
    return await agent.call("rec.echo", arguments, **state, **more)


@pytest.mark.long
async def test_a_client_without_tasks_is_told_that_a_person_is_asked(
    agent: Agent, alice: User, stack: Stack
) -> None:
    first = await agent.call("rec.echo", {"text": "x"}, token="t")

    said = first.result["_meta"]["countersign/waiting"]
    assert said == (
        "A person has to approve this call before it runs, at "
        f"{stack.web_url}/calls/{(await the_call()).pk}/."
    )
    step, _answer = first.messages
    assert step["params"]["message"] == "Pending approval."

    deciding = asyncio.create_task(decide_soon(alice, after=0.3))
    again = await retry(agent, first, token="u")
    await deciding
    steps = [one["params"] for one in again.messages[:-1]]
    assert steps[0]["progressToken"] == "u"
    assert steps[0]["message"] == "Pending approval."
    assert again.text == "x"


@pytest.mark.long
async def test_a_modern_client_is_told_to_ask_again(agent: Agent, upstream: Recorder) -> None:
    reply = await agent.call("rec.echo", {"text": "x"})

    assert reply.status == 200
    assert reply.result.keys() == {"resultType", "requestState", "_meta"}
    assert reply.result["resultType"] == "input_required"
    assert (await the_call(reply.call_id)).state == State.HELD
    assert upstream.calls == []


@pytest.mark.long
async def test_asking_again_is_held_until_the_decision_and_the_result(
    agent: Agent, alice: User, upstream: Recorder
) -> None:
    first = await agent.call("rec.echo", {"text": "x"})
    deciding = asyncio.create_task(decide_soon(alice))

    reply = await retry(agent, first)

    await deciding
    assert reply.text == "x"
    assert reply.result["resultType"] == "complete"
    assert reply.call_id == first.call_id
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_a_refusal_is_a_result_with_its_reason(
    agent: Agent, alice: User, upstream: Recorder
) -> None:
    first = await agent.call("rec.echo", {"text": "x"})
    deciding = asyncio.create_task(decide_soon(alice, approve=False, reason="Not today."))

    reply = await retry(agent, first)

    await deciding
    assert reply.result["isError"] is True
    assert "Denied by alice. Not today." in reply.text
    assert reply.result["_meta"]["countersign/executed"] == "no"
    assert upstream.calls == []


@pytest.mark.long
async def test_a_client_that_opens_pages_is_given_the_page_once(
    asking: None, play: Play, stack: Stack, alice: User
) -> None:
    agent = play(capabilities=URLS)

    first = await agent.call("rec.echo", {"text": "x"})

    request = first.result["inputRequests"]["approval"]
    assert request["method"] == "elicitation/create"
    assert request["params"]["mode"] == "url"
    assert request["params"]["url"] == f"{stack.web_url}/calls/{first.call_id}/"
    assert "rec.echo" in request["params"]["message"]

    deciding = asyncio.create_task(decide_soon(alice))
    accepted = {"inputResponses": {"approval": {"action": "accept"}}}
    reply = await retry(agent, first, **accepted)
    await deciding
    assert reply.text == "x"


@pytest.mark.long
async def test_to_open_the_page_is_not_to_approve(
    asking: None, play: Play, short_hold: Stack
) -> None:
    agent = play(capabilities=URLS, at_stack=short_hold)
    first = await agent.call("rec.echo", {"text": "x"})

    accepted = {"inputResponses": {"approval": {"action": "accept"}}}
    second = await retry(agent, first, **accepted)

    assert second.result["resultType"] == "input_required"
    assert "inputRequests" not in second.result


@pytest.mark.long
async def test_a_legacy_client_is_held_until_the_result(
    asking: None, legacy_agent: Agent, alice: User, upstream: Recorder
) -> None:
    deciding = asyncio.create_task(decide_soon(alice))

    reply = await legacy_agent.call("rec.echo", {"text": "x"}, token="t")

    await deciding
    assert reply.is_stream
    *signs, answer = reply.messages
    assert answer["result"]["content"][0]["text"] == "x"
    assert signs[0]["params"]["message"] == "Pending approval."
    progress = [sign["params"]["progress"] for sign in signs]
    assert progress == sorted(set(progress))
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_a_legacy_client_without_a_token_gets_only_the_result(
    asking: None, legacy_agent: Agent, alice: User
) -> None:
    deciding = asyncio.create_task(decide_soon(alice))

    reply = await legacy_agent.call("rec.echo", {"text": "x"})

    await deciding
    assert len(reply.messages) == 1
    assert reply.text == "x"


@pytest.fixture
async def short_hold(own_stack: Stack) -> Stack:
    """Processes whose patience ends after a second instead of 45."""
    own_stack.env["COUNTERSIGN_HOLD_S"] = "1"
    assert own_stack.agents
    return own_stack


@pytest.mark.long
async def test_a_legacy_client_whose_hold_is_over_is_told_how_to_come_back(
    asking: None, play: Play, short_hold: Stack, alice: User, upstream: Recorder
) -> None:
    agent = play("2025-06-18", at_stack=short_hold)

    reply = await agent.call("rec.echo", {"text": "x"})

    assert reply.result["isError"] is True
    assert reply.text.startswith("Not executed: pending approval.")
    assert f'countersign_await_call with {{"call_id": "{reply.call_id}"}}' in reply.text
    assert reply.result["_meta"]["countersign/executed"] == "no"
    assert upstream.calls == []

    deciding = asyncio.create_task(decide_soon(alice, after=0.2))
    awaited = await play("2025-06-18").call("countersign.await_call", {"call_id": reply.call_id})
    await deciding
    assert awaited.text == "x"
    assert awaited.call_id == reply.call_id


@pytest.fixture
async def short_first_hold(own_stack: Stack) -> Stack:
    own_stack.env["COUNTERSIGN_FIRST_HOLD_S"] = "0.5"
    assert own_stack.agents
    return own_stack


@pytest.mark.long
async def test_who_hears_nothing_meanwhile_is_soon_told_how_to_come_back(
    asking: None, play: Play, short_first_hold: Stack, alice: User
) -> None:
    """Some give up after 5 s, and their model reads that an error occurred."""
    agent = play(NEWEST, at_stack=short_first_hold)

    async with asyncio.timeout(20):
        reply = await agent.call("rec.echo", {"text": "x"})
    assert reply.text.startswith("Not executed: pending approval.")

    listening = asyncio.create_task(agent.call("rec.echo", {"text": "x"}, token="t"))
    awaiting = asyncio.create_task(agent.call("countersign_await_call", {"call_id": reply.call_id}))
    await decide_soon(alice, after=1.5)
    assert [(await each).text for each in (listening, awaiting)] == ["x", "x"]


@pytest.mark.long
async def test_who_cannot_come_back_is_held_for_as_long_as_any(
    asking: None, play: Play, short_first_hold: Stack, alice: User, toolset: Toolset
) -> None:
    await sync_to_async(services.set_own_tools)(toolset, [], by=None)
    agent = play(NEWEST, at_stack=short_first_hold)

    async def lists_none_of_ours() -> bool:
        tools = (await agent.ask("tools/list")).result["tools"]
        return not any(tool["name"].startswith("countersign") for tool in tools)

    await until(lists_none_of_ours)
    call = asyncio.create_task(agent.call("rec.echo", {"text": "x"}))
    await decide_soon(alice, after=1.5)
    assert (await call).text == "x"


@pytest.mark.long
@pytest.mark.parametrize("asks_again", ["the same", "for the outcome"])
async def test_who_gave_up_waiting_is_answered_sooner_the_next_time(
    asking: None, play: Play, asks_again: str
) -> None:
    agent = play(NEWEST)
    given_up = asyncio.create_task(agent.call("rec.echo", {"text": "x"}))
    call_id = str((await until_held()).pk)

    # Its client's own patience, of which nothing is said.
    await asyncio.wait([given_up], timeout=2.2)
    async with asyncio.timeout(20):
        if asks_again == "the same":
            reply = await agent.call("rec.echo", {"text": "x"})
        else:
            reply = await agent.call("countersign_await_call", {"call_id": call_id})

    assert reply.text.startswith("Not executed: pending approval.")
    assert reply.call_id == call_id
    given_up.cancel()


def test_what_was_learned_of_a_client_is_for_it_alone_and_not_for_ever() -> None:
    now = 1000.0
    habits, call_id = ClientHabits(lambda: now), uuid4()
    with contextlib.suppress(TimeoutError), habits.waiting(1, "mcp", call_id):
        now += 5
        raise TimeoutError
    with habits.waiting(1, "mcp", call_id):
        assert habits.hold_s(1, "mcp", 45) == 4
    assert habits.hold_s(1, "other", 45) == habits.hold_s(2, "mcp", 45) == 45
    now += 3601
    assert habits.hold_s(1, "mcp", 45) == 45


@pytest.mark.long
async def test_who_asks_anew_instead_of_again_is_answered_with_a_sentence(
    asking: None, play: Play, short_first_hold: Stack, alice: User
) -> None:
    """As SDKs' bare sessions, which take what they were told for an error."""
    agent = play(at_stack=short_first_hold)
    first = await agent.call("rec.echo", {"text": "x"})
    assert first.result["resultType"] == "input_required"

    anew = await agent.call("rec.echo", {"text": "x"})
    assert anew.text.startswith("Not executed: pending approval.")
    assert anew.call_id == first.call_id
    other = await agent.call("rec.echo", {"text": "y"})
    assert other.result["isError"] is True
    await agent.call("countersign_cancel_call", {"call_id": other.call_id})

    again = asyncio.create_task(retry(agent, first))
    await decide_soon(alice, after=0.2)
    assert (await again).text == "x"
    # It does ask again, so it is told to.
    third = await agent.call("rec.echo", {"text": "z"})
    assert third.result["resultType"] == "input_required"


def test_two_side_by_side_and_one_after_an_answer_teach_nothing() -> None:
    now = 1000.0
    habits, call_id = ClientHabits(lambda: now), uuid4()
    with habits.waiting(1, "mcp", call_id):
        now += 1
        with habits.waiting(1, "mcp", call_id):
            now += 44
    with habits.waiting(1, "mcp", call_id):
        assert habits.hold_s(1, "mcp", 45) == 45


@pytest.mark.long
@pytest.mark.parametrize(("of_the_toolset", "of_the_agent"), [(1, None), (50, 1)])
async def test_a_toolset_or_an_agent_has_its_own_hold(
    asking: None,
    any_agent: Agent,
    toolset: Toolset,
    scout: AgentRow,
    rule: AddRule,
    of_the_toolset: int,
    of_the_agent: int | None,
) -> None:
    """For frameworks that give up after 5 s: the first answer and each one after it is in time."""
    await sync_to_async(services.set_hold)(toolset, of_the_toolset, by=None)
    await sync_to_async(accounts.set_hold)(scout, of_the_agent, by=None)
    await rule(Effect.ALLOW, "unrelated")

    async with asyncio.timeout(20):
        reply = await any_agent.call("rec.echo", {"text": "x"})
        if any_agent.revision == MODERN:
            state = reply.result["requestState"]
            reply = await any_agent.call("rec.echo", {"text": "x"}, requestState=state)
            assert reply.result["resultType"] == "input_required"
        else:
            assert "countersign_await_call" in reply.text
        awaited = await any_agent.call("countersign_await_call", {"call_id": reply.call_id})

    assert awaited.text.startswith("Not executed: pending approval.")


@pytest.fixture
def resting_worker(asking: None, stack: Stack) -> Iterator[None]:
    """Alive, and takes nothing."""
    os.kill(stack.worker.pid, signal.SIGSTOP)
    yield
    os.kill(stack.worker.pid, signal.SIGCONT)


@pytest.mark.long
async def test_a_queued_call_is_not_said_to_be_not_executed(
    play: Play, short_hold: Stack, resting_worker: None, rule: AddRule, upstream: Recorder
) -> None:
    """A worker may have taken it before its agent reads that."""
    await Tool.objects.filter(name="erase").aupdate(mode=Tool.Mode.BACKGROUND)
    await rule(Effect.ALLOW, "unrelated")
    task = await play(capabilities=TASKS).call("rec.erase")
    agent = play("2025-06-18", at_stack=short_hold)
    call = await the_call()

    reply = await agent.call("countersign.await_call", {"call_id": str(call.pk)})

    assert task.result["resultType"] == "task"
    assert reply.result["_meta"]["countersign/state"] == "queued"
    assert reply.result["_meta"]["countersign/executed"] == "unknown"
    assert upstream.calls == []


@pytest.mark.long
async def test_a_process_that_stops_sends_who_waits_for_a_person_to_the_next_one(
    asking: None, play: Play, own_stack: Stack, upstream: Recorder
) -> None:
    assert own_stack.agents
    modern, legacy = play(at_stack=own_stack), play("2025-06-18", at_stack=own_stack)
    first = await modern.call("rec.echo", {"text": "x"})
    await legacy.begin()
    asked = [
        asyncio.create_task(retry(modern, first)),
        asyncio.create_task(legacy.call("rec.echo", {"text": "y"})),
    ]

    async def both_wait() -> bool:
        return await Call.objects.filter(state=State.HELD).acount() == 2

    await until(both_wait)
    await sync_to_async(own_stack.agents.stop)()
    again, told = await asyncio.gather(*asked)

    assert again.result["resultType"] == "input_required"
    assert told.text.startswith("Not executed: pending approval.")
    assert upstream.calls == []


@pytest.mark.long
async def test_a_process_that_stops_lets_nobodys_long_call_be_cancelled(
    play: Play, stack: Stack, own_stack: Stack, upstream: Recorder
) -> None:
    own_stack.env["COUNTERSIGN_STOP_WITHIN_S"] = "1"
    await Tool.objects.filter(name="hang").aupdate(mode=Tool.Mode.BACKGROUND)
    assert stack.worker
    assert own_stack.agents
    asking = asyncio.create_task(play(at_stack=own_stack).call("rec.hang"))

    async def sent() -> bool:
        return bool(upstream.calls)

    await until(sent)
    await sync_to_async(own_stack.agents.stop)()
    reply = await asking

    assert "countersign_await_call" in reply.text
    upstream.release()

    async def succeeded() -> bool:
        return (await the_call()).state == State.SUCCEEDED

    await until(succeeded)
    assert (await the_call()).cancel_asked_at is None


@pytest.mark.long
async def test_rounds_end_before_clients_lose_patience(
    asking: None, play: Play, short_hold: Stack
) -> None:
    agent = play(at_stack=short_hold)
    reply = await agent.call("rec.echo", {"text": "x"})
    rounds = 0
    while reply.result["resultType"] == "input_required":
        rounds += 1
        reply = await retry(agent, reply)

    assert rounds == 9
    assert reply.result["isError"] is True
    assert "pending approval" in reply.text
    assert (await the_call()).state == State.HELD


@pytest.mark.long
async def test_who_asks_the_same_again_joins_what_waits(asking: None, play: Play) -> None:
    # One that declares nothing, and asks anew, is held from then on.
    agent = play(capabilities=URLS)
    first = await agent.call("rec.echo", {"text": "x"})
    again = await agent.call("rec.echo", {"text": "x"})
    other = await agent.call("rec.echo", {"text": "y"})

    assert again.call_id == first.call_id
    assert other.call_id != first.call_id


def altered(state: str) -> str:
    return state[:30] + ("A" if state[30] != "A" else "B") + state[31:]


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        altered,
        lambda s: s[:-4],
        lambda s: "",
        lambda s: s + "=",
    ],
)
async def test_an_altered_state_is_refused(agent: Agent, change: Any) -> None:
    first = await agent.call("rec.echo", {"text": "x"})
    state = change(first.result["requestState"])

    reply = await agent.call("rec.echo", {"text": "x"}, requestState=state)

    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert "altered" in reply.error["message"]


@pytest.mark.long
@pytest.mark.parametrize("state", [None, 5, {}])
async def test_a_state_that_is_no_text_is_refused(agent: Agent, state: Any) -> None:
    reply = await agent.call("rec.echo", {"text": "x"}, requestState=state)

    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert await Call.objects.acount() == 0


@pytest.mark.long
async def test_a_state_is_good_for_the_same_request_only(agent: Agent, play: Play) -> None:
    first = await agent.call("rec.echo", {"text": "x"})
    state = first.result["requestState"]

    other_arguments = await agent.call("rec.echo", {"text": "y"}, requestState=state)
    other_tool = await agent.call("rec.say", {"text": "x"}, requestState=state)
    elsewhere = await play(at="desk/rec").call("echo", {"text": "x"}, requestState=state)

    for reply in (other_arguments, other_tool, elsewhere):
        assert (reply.status, reply.error["code"]) == (400, -32602)
        assert "other arguments" in reply.error["message"]
    assert await Call.objects.acount() == 1


@sync_to_async
def another_agent(toolset: Toolset, owner: User) -> str:
    other = accounts.create_agent("other", owner=owner, by=owner)
    services.assign(toolset, other, by=owner)
    return accounts.issue_token(other, by=owner)


@pytest.mark.long
async def test_another_agents_state_is_refused(
    agent: Agent, play: Play, toolset: Toolset, bob: User
) -> None:
    first = await agent.call("rec.echo", {"text": "x"})
    thief = play(token=await another_agent(toolset, bob))

    reply = await retry(thief, first)

    assert (reply.status, reply.error["code"]) == (400, -32602)


@pytest.mark.long
async def test_an_expired_state_is_refused(agent: Agent) -> None:
    first = await agent.call("rec.echo", {"text": "x"})
    call = await the_call(first.call_id)
    digest = handles.request_digest("desk", "rec.echo", b'{"text": "x"}')
    past = int(time.time()) - 1
    state = handles.seal_state(handles.RequestState(call.pk, digest, 1, past), call.agent_id)

    reply = await agent.call("rec.echo", {"text": "x"}, requestState=state)

    assert "expired" in reply.error["message"]


@pytest.mark.long
async def test_a_held_round_that_is_left_leaves_the_call_waiting(agent: Agent, alice: User) -> None:
    first = await agent.call("rec.echo", {"text": "x"})
    params = {"name": "rec.echo", "arguments": {"text": "x"}}
    params["requestState"] = first.result["requestState"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5):
            await agent.ask("tools/call", params)

    await decide(alice)

    assert (await retry(agent, first)).text == "x"


@pytest.mark.long
async def test_awaiting_is_only_for_ones_own_calls(
    agent: Agent, play: Play, toolset: Toolset, bob: User
) -> None:
    first = await agent.call("rec.echo", {"text": "x"})
    stranger = play(token=await another_agent(toolset, bob))

    replies = [
        await stranger.call("countersign.await_call", {"call_id": call_id})
        for call_id in (first.call_id, "0192f000-0000-7000-8000-000000000000", "x", None, 5)
    ]
    replies.append(await stranger.call("countersign.await_call", {}))

    assert {reply.text for reply in replies} == {
        "No call of yours has this call_id. Give the one that the earlier answer named."
    }
    assert all(reply.result["isError"] for reply in replies)


async def test_awaiting_what_has_ended_answers_at_once(play: Play) -> None:
    agent = play()
    done = await agent.call("rec.echo", {"text": "x"})

    awaited = await agent.call("countersign.await_call", {"call_id": done.call_id})

    assert awaited.text == "x"


@pytest.mark.long
async def test_a_held_call_that_expires_never_runs(
    agent: Agent, stack: Stack, upstream: Recorder
) -> None:
    first = await agent.call("rec.echo", {"text": "x"})
    assert stack.worker

    @sync_to_async
    def time_passes() -> None:
        approval = Approval.objects.get()
        Approval.objects.update(decide_by=approval.asked_at)

    await time_passes()

    reply = await retry(agent, first)

    assert reply.result["isError"] is True
    assert "Nobody decided in time." in reply.text
    assert upstream.calls == []
