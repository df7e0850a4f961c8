"""An agent that gives a key asks for one call, however often it sends the request."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db.models.functions import Now

from accounts import services as accounts
from accounts.models import User
from audit.models import Entry
from calls.models import Call, Once
from calls.record.idempotency import KEY_S
from calls.record.states import State
from calls.services import forget_keys
from policies.flow import FlowQuestion
from policies.lookback import read_flow
from policies.models import Effect
from registry import services
from registry.models import Server, Toolset
from tests.gateway.agent import LEGACY, MODERN, TASKS, URLS, Agent, Reply
from tests.gateway.conftest import AddRule, Play, decide, until
from tests.gateway.test_rest import Rest, rest  # noqa: F401 a fixture
from tests.gateway.test_streams import until_running
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

META = "countersign/idempotencyKey"
REPEATED = "countersign/repeated"


async def send(
    agent: Agent,
    tool: str,
    arguments: Any = None,
    *,
    key: Any = None,
    header: str = "",
    **meta: Any,
) -> Reply:
    params = {"name": tool, "arguments": {} if arguments is None else arguments}
    message = await agent.message("tools/call", params)
    beside = {name.replace("_", "/"): value for name, value in meta.items()}
    beside |= {} if key is None else {META: key}
    message["params"]["_meta"] = message["params"].get("_meta", {}) | beside
    headers = agent.headers(message) | ({"Idempotency-Key": header} if header else {})
    return await agent.post(message, headers=headers)


@pytest.fixture(params=[MODERN, LEGACY[0], LEGACY[-1]])
def some_agent(request: pytest.FixtureRequest, play: Play) -> Agent:
    return play(request.param)


async def test_the_same_key_brings_the_first_result(some_agent: Agent, upstream: Recorder) -> None:
    first = await send(some_agent, "rec.echo", {"text": "x"}, key="order 7")
    again = await send(some_agent, "rec.echo", {"text": "x"}, key="order 7")

    assert (again.text, again.call_id) == ("x", first.call_id)
    assert REPEATED not in first.result["_meta"]
    assert again.result["_meta"][REPEATED] is True
    assert again.result["content"] == first.result["content"]
    assert len(upstream.calls) == 1
    entries = [entry async for entry in Entry.objects.filter(call_id=first.call_id).order_by("id")]
    assert entries[0].details["idempotency_key"] == "order 7"
    assert (entries[-1].action, entries[-1].details["why"]) == ("call.joined", "key")
    # It heard of the result again.
    agent_id = entries[0].agent_id
    assert agent_id is not None
    heard = await sync_to_async(read_flow)(FlowQuestion(agent_id))
    assert heard is not None
    assert heard.untrusted is not None
    assert heard.untrusted.at == entries[-1].at


async def test_header_and_meta_are_two_places_for_one_key(agent: Agent, upstream: Recorder) -> None:
    first = await send(agent, "rec.echo", {"text": "x"}, header="k-1")
    quoted = await send(agent, "rec.echo", {"text": "x"}, header='"k-1"')
    meta = await send(agent, "rec.echo", {"text": "x"}, key="k-1")
    both = await send(agent, "rec.echo", {"text": "x"}, key="k-1", header="k-1")
    unlike = await send(agent, "rec.echo", {"text": "x"}, key="k-1", header="k-2")

    assert {r.call_id for r in (first, quoted, meta, both)} == {first.call_id}
    assert (unlike.status, unlike.error["code"]) == (400, -32602)
    assert "something else than _meta" in unlike.error["message"]
    assert len(upstream.calls) == 1


@pytest.mark.parametrize("key", ["", 7, None, ["k"], "k" * 256, "two\nlines"])
async def test_what_is_no_key_is_refused_before_anything_is_sent(
    agent: Agent, upstream: Recorder, key: Any
) -> None:
    message = await agent.message("tools/call", {"name": "rec.say", "arguments": {}})
    message["params"]["_meta"][META] = key
    reply = await agent.post(message, headers=agent.headers(message))

    if key is None:
        assert reply.status == 200
        return
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert "1 to 255 characters" in reply.error["message"]
    assert upstream.calls == []


async def test_the_same_key_for_something_else_is_refused_and_recorded(
    some_agent: Agent, upstream: Recorder
) -> None:
    first = await send(some_agent, "rec.echo", {"text": "x"}, key="k")

    other_arguments = await send(some_agent, "rec.echo", {"text": "y"}, key="k")
    other_tool = await send(some_agent, "rec.say", {"text": "x"}, key="k")

    for reply in (other_arguments, other_tool):
        assert reply.error["code"] == -32602
        assert first.call_id in reply.error["message"]
        assert "give another key" in reply.error["message"]
    assert len(upstream.calls) == 1
    assert await Call.objects.filter(state=State.INVALID).acount() == 2


@pytest.mark.long
async def test_fifty_at_once_are_one_call(play: Play, own_stack: Stack, upstream: Recorder) -> None:
    """Sent to two gateways that know nothing of each other."""
    assert own_stack.agents
    agents = [play(), play(at_stack=own_stack)]

    asked = [send(agents[n % 2], "rec.echo", {"text": "x"}, key="k") for n in range(50)]
    replies = await asyncio.gather(*asked)

    assert Counter(reply.status for reply in replies) == {200: 50}
    assert {reply.text for reply in replies} == {"x"}
    assert len({reply.call_id for reply in replies}) == 1
    assert len(upstream.calls) == 1
    assert await Call.objects.acount() == 1


@pytest.mark.long
async def test_it_holds_after_the_gateway_was_killed(
    play: Play, own_stack: Stack, upstream: Recorder
) -> None:
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    first = await send(agent, "rec.echo", {"text": "x"}, key="k")

    await asyncio.to_thread(own_stack.agents.restart)
    again = await send(agent, "rec.echo", {"text": "x"}, key="k")

    assert (again.call_id, again.text) == (first.call_id, "x")
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_whoever_went_away_gets_the_outcome_when_it_comes_back(
    some_agent: Agent, upstream: Recorder
) -> None:
    """A key says that its client will come back: going away cancels nothing."""
    left = asyncio.create_task(send(some_agent, "rec.hang", key="k"))
    await until_running(upstream)
    await asyncio.sleep(0.7)
    left.cancel()

    again = asyncio.create_task(send(some_agent, "rec.hang", key="k"))
    await until(lambda: Entry.objects.filter(action="call.joined").aexists())
    upstream.release()
    reply = await again

    assert reply.text == "done"
    assert len(upstream.calls) == 1
    assert (upstream.gone, (await Call.objects.aget()).cancel_asked_by) == (0, "")


@pytest.mark.long
async def test_a_call_that_waits_for_people_is_waited_for_again(
    play: Play, rule: AddRule, stack: Stack, alice: User, upstream: Recorder
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(capabilities=TASKS)
    first = await send(agent, "rec.echo", {"text": "x"}, key="k")
    waiting = await send(agent, "rec.echo", {"text": "x"}, key="k")
    await decide(alice)
    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())

    done = await send(agent, "rec.echo", {"text": "x"}, key="k")

    assert waiting.result["taskId"] == first.result["taskId"]
    assert (done.text, done.call_id) == ("x", first.call_id)
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_a_persons_no_stays_a_no(
    agent: Agent, rule: AddRule, alice: User, upstream: Recorder
) -> None:
    await rule(Effect.ASK, "echo")
    await send(agent, "rec.echo", {"text": "x"}, key="k")
    await decide(alice, approve=False, reason="Not today.")

    again = await send(agent, "rec.echo", {"text": "x"}, key="k")

    assert "Not today." in again.text
    assert again.result["_meta"][REPEATED] is True
    assert upstream.calls == []


async def test_another_key_joins_the_same_that_waits_and_stands_for_it(
    play: Play, rule: AddRule
) -> None:
    # One that declares nothing, and asks anew, is held from then on.
    agent = play(capabilities=URLS)
    await rule(Effect.ASK, "echo")
    first = await send(agent, "rec.echo", {"text": "x"}, key="one")
    joined = await send(agent, "rec.echo", {"text": "x"}, key="two")
    again = await send(agent, "rec.echo", {"text": "x"}, key="two")
    other = await send(agent, "rec.echo", {"text": "y"}, key="two")

    assert {joined.call_id, again.call_id} == {first.call_id}
    assert "stands for another call" in other.error["message"]


async def test_what_was_refused_takes_no_key(
    agent: Agent, rule: AddRule, upstream: Recorder
) -> None:
    wrong = await send(agent, "rec.form", {"city": "x"}, key="k")
    right = await send(agent, "rec.form", {"city": "Paris"}, key="k")

    assert wrong.result["isError"] is True
    assert right.text == "done"
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_what_failed_on_its_way_may_be_tried_again_with_its_key(
    play: Play, rule: AddRule, upstream: Recorder
) -> None:
    agent = play()
    await Server.objects.aupdate(url="http://127.0.0.1:9/mcp")
    await rule(Effect.ALLOW, "unrelated")
    first = await send(agent, "rec.echo", {"text": "x"}, key="k")
    await Server.objects.aupdate(url=upstream.url)
    await rule(Effect.ALLOW, "unrelated too")

    again = await send(agent, "rec.echo", {"text": "x"}, key="k")

    assert first.result["_meta"]["countersign/executed"] == "no"
    assert again.text == "x"
    assert again.call_id != first.call_id
    assert len(upstream.calls) == 1


async def test_a_key_is_its_agents_own(
    play: Play, toolset: Toolset, bob: User, upstream: Recorder
) -> None:
    mine = await send(play(), "rec.echo", {"text": "x"}, key="k")
    other = play(token=await another_agent(toolset, bob))

    theirs = await send(other, "rec.echo", {"text": "x"}, key="k")

    assert theirs.call_id != mine.call_id
    assert REPEATED not in theirs.result["_meta"]
    assert len(upstream.calls) == 2


@sync_to_async
def another_agent(toolset: Toolset, owner: User) -> str:
    other = accounts.create_agent("other", owner=owner, by=owner)
    services.assign(toolset, other, by=owner)
    return accounts.issue_token(other, by=owner)


async def test_a_key_ends_a_day_after_its_call(agent: Agent, upstream: Recorder) -> None:
    first = await send(agent, "rec.echo", {"text": "x"}, key="k")
    assert (await Once.objects.aget()).lasts_s == KEY_S == 24 * 3600
    await Once.objects.aupdate(lasts_s=0)

    later = await send(agent, "rec.echo", {"text": "x"}, key="k")

    assert later.call_id != first.call_id
    assert len(upstream.calls) == 2


async def test_keys_that_stand_for_nothing_are_forgotten(agent: Agent) -> None:
    for key in ("old", "of a call that ended lately", "new"):
        await send(agent, "rec.echo", {"text": key}, key=key)
    past = Now() - timedelta(days=2)
    keys = [key async for key in Once.objects.order_by("at")]
    await Once.objects.filter(pk=keys[0].pk).aupdate(at=past, lasts_s=0)
    await Once.objects.filter(pk=keys[1].pk).aupdate(at=past)

    assert await sync_to_async(forget_keys)() == 1

    assert {key.pk async for key in Once.objects.all()} == {keys[1].pk, keys[2].pk}


async def test_rest_takes_the_header_too(rest: Rest, upstream: Recorder) -> None:  # noqa: F811
    body = {"toolset": "desk", "tool": "rec.echo", "arguments": {"text": "x"}}
    asked = {"Idempotency-Key": "k"}

    first = await rest.send("POST", "calls", body, **asked)
    again = await rest.send("POST", "calls", body, **asked)
    other = await rest.send("POST", "calls", {**body, "arguments": {"text": "y"}}, **asked)
    wrong = await rest.send("POST", "calls", body, **{"Idempotency-Key": "k" * 256})

    assert again.last["id"] == first.last["id"]
    assert again.last["result"] == first.last["result"]
    assert (other.status, wrong.status) == (422, 400)
    assert "another key" in other.last["detail"]
    assert len(upstream.calls) == 1
