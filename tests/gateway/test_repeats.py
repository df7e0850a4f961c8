"""The same call again, without a key: not sent twice unasked, where that could do harm."""

import asyncio
import os
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from accounts.models import User
from approvals.cards import Card, cards
from approvals.models import Approval
from audit.models import Entry
from calls.models import Call, Once
from calls.record.states import State
from gateway.submit.idempotency import ALLOW_DUPLICATE as AGAIN
from policies.models import Effect
from registry.models import Tool, Toolset
from tests.gateway.agent import LEGACY, MODERN, Agent, Reply
from tests.gateway.conftest import AddRule, Play, decide, until
from tests.gateway.test_once import REPEATED, another_agent, send
from tests.gateway.test_rest import Rest, rest  # noqa: F401 a fixture
from tests.gateway.test_streams import until_running
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=[MODERN, LEGACY[0]])
def agent(request: pytest.FixtureRequest, play: Play) -> Agent:
    return play(request.param)


async def again(agent: Agent, tool: str, arguments: Any = None) -> Reply:
    """On purpose."""
    return await send(agent, tool, arguments, countersign_again=True)


async def handled(rule: AddRule, **how: Any) -> None:
    """As an operator sets it; by its return every process goes by it."""
    await Tool.objects.aupdate(**how)
    await rule(Effect.ALLOW, f"unrelated to {sorted(how)}")


async def left(agent: Agent, upstream: Recorder) -> Call:
    """A call whose client went away while it ran."""
    asking = asyncio.create_task(agent.call("rec.hang"))
    await until_running(upstream)
    await asyncio.sleep(0.7)
    asking.cancel()
    return await until(Call.objects.filter(unheard_at__isnull=False).afirst)  # type: ignore[no-any-return]


async def timed_out(agent: Agent, rule: AddRule) -> Call:
    await handled(rule, timeout_s=1)
    reply = await agent.call("rec.hang")
    call = await Call.objects.aget(pk=reply.call_id)
    assert (call.state, call.executed) == (State.UNKNOWN, "unknown")
    return call


def is_repeated(reply: Reply, call: Call) -> bool:
    return reply.call_id == str(call.pk) and reply.result["_meta"].get(REPEATED) is True


@pytest.mark.long
async def test_what_its_client_did_not_wait_for_is_waited_for_again(
    play: Play, upstream: Recorder
) -> None:
    """A legacy client that goes away cancels nothing: the first goes on."""
    agent = play(LEGACY[0])
    call = await left(agent, upstream)

    coming_back = asyncio.create_task(agent.call("rec.hang"))
    await until(lambda: Entry.objects.filter(action="call.joined").aexists())
    upstream.release()
    reply = await coming_back

    assert (reply.text, reply.call_id) == ("done", str(call.pk))
    assert len(upstream.calls) == 1
    entry = await Entry.objects.aget(action="call.joined")
    assert (entry.call_id, entry.details["why"]) == (call.pk, "guard")


async def test_what_ended_unheard_is_told_once_and_may_then_be_repeated(
    play: Play, upstream: Recorder
) -> None:
    agent = play(LEGACY[0])
    call = await left(agent, upstream)
    upstream.release()
    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())

    told = await agent.call("rec.hang")
    meant = await agent.call("rec.hang")

    assert is_repeated(told, call)
    assert told.text == "done"
    assert "Not sent again" in told.result["content"][-1]["text"]
    assert meant.text == "done"
    assert meant.call_id != str(call.pk)
    assert len(upstream.calls) == 2


@pytest.mark.long
@pytest.mark.parametrize("tool", ["await_call", "get_call"])
async def test_what_it_asked_the_end_of_it_has_heard(
    play: Play, upstream: Recorder, tool: str
) -> None:
    agent = play(LEGACY[0])
    call = await left(agent, upstream)
    upstream.release()
    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())

    await agent.call(f"countersign.{tool}", {"call_id": str(call.pk)})
    meant = await agent.call("rec.hang")

    assert meant.call_id != str(call.pk)
    assert len(upstream.calls) == 2


async def test_a_modern_client_that_went_away_and_comes_back_sends_nothing_twice(
    play: Play, upstream: Recorder
) -> None:
    agent = play()
    call = await left(agent, upstream)
    await until(lambda: Call.objects.exclude(finished_at=None).aexists())
    upstream.release()

    reply = await agent.call("rec.hang")

    await call.arefresh_from_db()
    assert call.executed != "no"
    assert is_repeated(reply, call)
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_what_may_have_run_is_not_sent_again(
    agent: Agent, rule: AddRule, upstream: Recorder
) -> None:
    call = await timed_out(agent, rule)

    first = await agent.call("rec.hang")
    second = await agent.call("rec.hang")
    other = await agent.call("rec.say")

    for reply in (first, second):
        assert is_repeated(reply, call)
        assert reply.result["isError"] is True
        assert "Not sent again" in reply.text
        assert f'"{AGAIN}": true' in reply.text
        assert reply.result["_meta"]["countersign/executed"] == "unknown"
    assert other.text == "done"
    assert len(upstream.calls) == 2


@pytest.mark.long
async def test_it_is_not_asked_of_people_either(
    agent: Agent, rule: AddRule, upstream: Recorder
) -> None:
    call = await timed_out(agent, rule)
    await rule(Effect.ASK, "hang")

    reply = await agent.call("rec.hang")

    assert is_repeated(reply, call)
    assert not await Call.objects.filter(state=State.HELD).aexists()


@pytest.mark.long
async def test_ten_minutes_later_it_may_be(
    agent: Agent, rule: AddRule, upstream: Recorder, own_rights: Any
) -> None:
    call = await timed_out(agent, rule)
    await own_rights(call, "finished_at", "interval '11 minutes'")

    later = await agent.call("rec.hang")

    assert later.call_id != str(call.pk)
    assert len(upstream.calls) == 2


@pytest.fixture
def own_rights(databases: Any) -> Any:
    """Moves one of a call's times into the past, as nobody but a superuser can."""

    async def past(call: Call, column: str, how_long: str) -> None:
        with databases.superuser(os.environ) as link:
            link.execute("SET session_replication_role = replica")
            link.execute(
                f"UPDATE calls_call SET {column} = {column} - {how_long} WHERE id = %s", [call.pk]
            )

    return past


@pytest.mark.long
@pytest.mark.parametrize("how", [{"safe_to_repeat": True}, {"repeats": Tool.Repeats.ALLOW}])
async def test_operators_may_let_a_tools_calls_be_repeated(
    agent: Agent, rule: AddRule, upstream: Recorder, how: dict[str, Any]
) -> None:
    call = await timed_out(agent, rule)
    await handled(rule, **how)
    upstream.release()

    reply = await agent.call("rec.hang")

    assert reply.call_id != str(call.pk)
    assert len(upstream.calls) == 2


@pytest.mark.long
async def test_an_agent_may_mean_it_and_the_record_says_so(
    agent: Agent, rule: AddRule, upstream: Recorder
) -> None:
    call = await timed_out(agent, rule)
    upstream.release()

    reply = await again(agent, "rec.hang")

    assert reply.call_id != str(call.pk)
    assert len(upstream.calls) == 2
    entry = await Entry.objects.aget(call_id=reply.call_id, seq=1)
    assert entry.details["again"] == str(call.pk)


@pytest.mark.parametrize("said", ["yes", 1, None, []])
async def test_what_does_not_say_that_it_is_meant_is_refused(
    agent: Agent, upstream: Recorder, said: Any
) -> None:
    reply = await send(agent, "rec.say", countersign_again=said)

    assert reply.error["code"] == -32602
    assert "must be true or false" in reply.error["message"]
    assert upstream.calls == []


async def test_what_was_answered_may_be_asked_again_at_once(
    agent: Agent, upstream: Recorder
) -> None:
    replies = [await agent.call("rec.echo", {"text": "x"}) for _ in range(3)]

    assert len({reply.call_id for reply in replies}) == 3
    assert len(upstream.calls) == 3


async def test_an_error_that_its_server_answered_may_be_asked_for_again_at_once(
    agent: Agent, upstream: Recorder
) -> None:
    replies = [await agent.call("rec.fail") for _ in range(3)]

    assert [reply.error["code"] for reply in replies] == [1234] * 3
    assert len(upstream.calls) == 3
    calls = [(call.state, call.executed) async for call in Call.objects.all()]
    assert calls == [(State.FAILED, "reported")] * 3


async def test_an_error_that_nobody_heard_is_told_once(play: Play, upstream: Recorder) -> None:
    agent = play(LEGACY[0])
    await agent.call("rec.fail")
    await Call.objects.aupdate(unheard_at=timezone.now())

    told = await agent.call("rec.fail")
    meant = await agent.call("rec.fail")

    assert (told.error["code"], meant.error["code"]) == (1234, 1234)
    assert len(upstream.calls) == 2


class TestGuarded:
    """Tools of which an operator said that the same within ten minutes is a mistake."""

    @pytest.fixture(autouse=True)
    async def guarded(self, rule: AddRule, play: Play) -> None:
        await handled(rule, repeats=Tool.Repeats.GUARD)

    async def test_the_same_is_answered_with_the_first_result(
        self, agent: Agent, upstream: Recorder
    ) -> None:
        first = await agent.call("rec.echo", {"text": "x"})
        second = await agent.call("rec.echo", {"text": "x"})
        other = await agent.call("rec.echo", {"text": "y"})
        meant = await again(agent, "rec.echo", {"text": "x"})

        assert second.call_id == first.call_id
        assert second.result["_meta"][REPEATED] is True
        assert "Not sent again" in second.result["content"][-1]["text"]
        assert other.text == "y"
        assert (meant.text, meant.call_id != first.call_id) == ("x", True)
        assert len(upstream.calls) == 3

    async def test_ten_minutes_later_it_is_sent(self, agent: Agent, upstream: Recorder) -> None:
        await agent.call("rec.echo", {"text": "x"})
        assert (await Once.objects.aget()).lasts_s == 600
        await Once.objects.aupdate(lasts_s=0)

        await agent.call("rec.echo", {"text": "x"})

        assert len(upstream.calls) == 2

    @pytest.mark.long
    async def test_thirty_at_once_are_one(
        self, agent: Agent, play: Play, own_stack: Stack, upstream: Recorder
    ) -> None:
        assert own_stack.agents
        agents = [agent, play(agent.revision, at_stack=own_stack)]
        for one in agents:
            await one.ask("tools/list")

        asked = [agents[n % 2].call("rec.echo", {"text": "x"}) for n in range(30)]
        replies = await asyncio.gather(*asked)

        assert Counter(reply.call_id for reply in replies).most_common(1)[0][1] == 30
        assert len(upstream.calls) == 1

    @pytest.mark.long
    async def test_what_never_ran_keeps_nothing_back(
        self, agent: Agent, rule: AddRule, alice: User, stack: Stack, upstream: Recorder
    ) -> None:
        assert stack.worker
        await rule(Effect.ASK, "echo")
        asker = Agent(agent.http, agent.url, agent.token)
        denied = await asker.call("rec.echo", {"text": "x"})
        await decide(alice, approve=False)

        anew = await asker.call("rec.echo", {"text": "x"})

        assert anew.call_id != denied.call_id
        assert anew.result["resultType"] == "input_required"

    @pytest.mark.long
    async def test_another_agents_is_another_call(
        self, agent: Agent, play: Play, toolset: Toolset, bob: User, upstream: Recorder
    ) -> None:
        other = play(agent.revision, token=await another_agent(toolset, bob))

        await agent.call("rec.echo", {"text": "x"})
        await other.call("rec.echo", {"text": "x"})

        assert len(upstream.calls) == 2


@pytest.mark.long
async def test_rest_says_it_in_the_body(
    rest: Rest,  # noqa: F811
    rule: AddRule,
    upstream: Recorder,
) -> None:
    await handled(rule, repeats=Tool.Repeats.GUARD)
    body = {"toolset": "desk", "tool": "rec.echo", "arguments": {"text": "x"}}

    first = await rest.send("POST", "calls", body)
    second = await rest.send("POST", "calls", body)
    meant = await rest.send("POST", "calls", {**body, "again": True})
    wrong = await rest.send("POST", "calls", {**body, "again": "yes"})

    assert second.last["id"] == first.last["id"]
    assert meant.last["id"] != first.last["id"]
    assert wrong.status == 400
    assert len(upstream.calls) == 2


@pytest.mark.long
async def test_who_decides_is_told_that_it_is_meant(
    agent: Agent, rule: AddRule, upstream: Recorder
) -> None:
    call = await timed_out(agent, rule)
    await rule(Effect.ASK, "hang")
    asker = Agent(agent.http, agent.url, agent.token)

    held = await again(asker, "rec.hang")

    (card,) = await sync_to_async(_cards)(held.call_id)
    assert card.again is not None
    assert card.again.call is not None
    assert card.again.call.pk == call.pk


def _cards(call_id: str) -> list[Card]:
    return cards(
        Approval.objects.for_queue().filter(call__id=UUID(call_id)),
        User.objects.get(username="bob"),
    )
