"""Rates, budgets, calls at the same time and loop breakers, through the one door, with two gateways
in this process that know nothing of each other but by PostgreSQL."""

import asyncio
import math
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError

from accounts import services as accounts
from accounts.models import Agent, User
from approvals.models import Approval
from audit.models import Entry
from audit.services import SYSTEM, record
from calls.models import Call
from calls.record.states import Executed, State
from core.errors import RecordUnavailable
from gateway.process import limit_shares, limit_windows
from gateway.process.limit_shares import LeaseOrder, share_of
from gateway.process.runtime import Runtime
from gateway.rest.problems import rate_limit
from gateway.submit.wait import cancel_now
from policies.limits.compiled import CounterKey, LimitReached, compiled
from policies.limits.services import save_limit
from policies.models import Limit, LimitCounter, LimitUse
from policies.unusual import REFUSALS
from registry import services as registry
from registry.models import Toolset
from tests.gateway.agent import LEGACY, MODERN, TASKS
from tests.gateway.conftest import Play, add_server
from tests.gateway.limiting import add_limit, ask, limit, states
from tests.gateway.test_rest import Rest, rest  # noqa: F401
from tests.processes import ROOT
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

# Two that the server calls nothing, and one that destroys.
RISKS = ("rec.echo", "rec.say", "rec.erase")
Two = tuple[Runtime, Runtime]


@pytest.fixture
async def two(toolset: Toolset) -> AsyncIterator[Two]:
    """Gateways."""
    made = Runtime(), Runtime()
    for runtime in made:
        await runtime.start()
    yield made
    for runtime in made:
        await runtime.aclose()


async def test_a_rate_holds_for_both_gateways_together(
    two: Two, scout_token: str, upstream: Recorder
) -> None:
    await limit(amount=5, period="hour", reason="Mails are read by people.")

    results = [await ask(two[n % 2], scout_token, str(n)) for n in range(9)]

    assert states(results) == {"succeeded": 5, "limit": 4}
    assert len(upstream.calls) == 5
    refused = results[-1]
    assert refused.reason == (
        "Limit “calls 0” is reached: 5 calls per hour. Mails are read by people. "
        "Ask again in 12 min."
    )
    assert refused.answer is not None
    assert refused.answer.refusal is not None
    told = refused.answer.refusal.told(refused.reason)
    assert (told["kind"], told["try_again"]) == ("limit", "later")
    assert 700 < told["after_s"] <= 720


def another(name: str, owner: User, toolset: Toolset) -> tuple[Agent, str]:
    made = accounts.create_agent(name, owner=owner, by=owner)
    registry.assign(toolset, made, by=owner)
    return made, accounts.issue_token(made, by=owner)


async def test_a_shared_count_tells_no_agent_of_anothers_call(
    two: Two, toolset: Toolset, scout_token: str, bob: User
) -> None:
    clerk, clerk_token = await sync_to_async(another)("clerk", bob, toolset)
    await limit(amount=1, period="hour", per=[])
    await ask(two[0], scout_token)
    refused = [await ask(two[0], token, "y") for token in (scout_token, clerk_token)]

    assert states(refused) == {"limit": 2}
    assert refused[0].call_id != refused[1].call_id
    assert (await Call.objects.aget(pk=refused[1].call_id)).agent_id == clerk.pk


async def test_a_flood_is_recorded_once_by_each_gateway(
    two: Two, scout_token: str, upstream: Recorder
) -> None:
    await limit(amount=1, period="hour")
    await ask(two[0], scout_token)

    results = await asyncio.gather(*(ask(two[n % 2], scout_token, str(n)) for n in range(60)))

    assert states(results) == {"limit": 60}
    recorded = {call.pk async for call in Call.objects.filter(state=State.REFUSED)}
    assert len(recorded) == 2
    assert {one.call_id for one in results} == recorded
    entries = [one async for one in Entry.objects.filter(action="call.refused")]
    assert {one.call_id for one in entries} == recorded
    assert entries[0].details["refusal"] == "limit"
    for gateway in two:
        await gateway.aclose()
    found = [one async for one in counted()]
    told = [one for one in found if one[0] == "limit.reached"]
    assert told == [("limit.reached", "calls 0", 1)] * 2
    # Each has 29 more, whose number is written as it doubles.
    assert sum(calls for action, _limit, calls in found if action == "limit.refused") == 58
    assert len(found) <= 2 + 2 * 4


async def test_who_stops_waits_for_what_is_being_written(
    two: Two, scout_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await limit(amount=1, period="hour")
    begun, may_go_on = threading.Event(), threading.Event()

    def record_late(action: str, **facts: Any) -> Any:
        if action == "limit.refused":
            begun.set()
            may_go_on.wait(20)
        return record(action, **facts)

    monkeypatch.setattr(limit_windows, "record", record_late)
    for n in range(1 + REFUSALS):
        await ask(two[0], scout_token, str(n))
    assert await asyncio.to_thread(begun.wait, 20)

    threading.Timer(0.5, may_go_on.set).start()
    await two[0].aclose()

    found = [one async for one in counted()]
    # The first call ran, and the second one stands for the window.
    written = sum(calls for action, _limit, calls in found if action == "limit.refused")
    assert written == REFUSALS - 1


async def counted() -> AsyncIterator[tuple[str, str, int]]:
    entries = Entry.objects.filter(action__in=("limit.refused", "limit.reached")).order_by("id")
    async for one in entries:
        yield one.action, one.details["limit"], one.details["calls"]


async def test_who_stops_writes_down_what_was_refused(two: Two, scout_token: str) -> None:
    await limit(amount=1, period="hour")
    await limit(amount=1, period="hour", mode="shadow")
    for n in range(4):
        await ask(two[0], scout_token, str(n))

    await two[0].aclose()

    assert sorted([one async for one in counted()]) == [
        ("limit.reached", "calls 0", 1),
        ("limit.reached", "calls 1", 1),
        ("limit.refused", "calls 0", 2),
    ]
    # Its owner may be told, and mail names it.
    assert {one.agent async for one in Entry.objects.filter(action__startswith="limit.re")} == {
        "scout"
    }


async def test_a_window_is_written_down_as_it_ends_and_again_until_it_is(
    two: Two, scout_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_windows, "LEAST_S", 0.3)
    monkeypatch.setattr(limit_windows, "MOST_S", 0.3)
    failed: list[str] = []
    write = record

    def fail_once(action: str, **said: Any) -> Any:
        if action not in failed:
            failed.append(action)
            raise OperationalError("Not now.")
        return write(action, **said)

    monkeypatch.setattr(limit_windows, "record", fail_once)
    await limit(amount=1, period="hour")
    for n in range(3):
        await ask(two[0], scout_token, str(n))

    await asyncio.gather(*(one for one in two[0]._calls if "_end" in str(one)))

    assert failed == ["limit.reached", "limit.refused"]
    assert sorted([one async for one in counted()]) == [
        ("limit.reached", "calls 0", 1),
        ("limit.refused", "calls 0", 1),
    ]


@pytest.mark.long
def test_a_process_that_closes_nothing_writes_it_at_its_exit(
    transactional_db: None, scout_token: str, toolset: Toolset
) -> None:
    add_limit(amount=1, period="hour")
    argv = [sys.executable, "-m", "tests.gateway.refused", scout_token]

    subprocess.run(argv, cwd=ROOT, check=True, timeout=60)

    (entry,) = Entry.objects.filter(action="limit.refused")
    assert entry.details["calls"] == 2


async def test_a_flood_asked_for_as_tasks_is_recorded_once_too(
    play: Play, scout: Agent, bob: User, toolset: Toolset
) -> None:
    await limit(amount=1, period="hour")
    token = await sync_to_async(accounts.issue_token)(scout, by=bob)
    agent = play(LEGACY[0], token=token)
    await agent.call("rec.echo", {"text": "first"})

    replies = await asyncio.gather(
        *(agent.call("rec.echo", {"text": str(n)}, task={}) for n in range(20))
    )

    tasks = {one.result["task"]["taskId"] for one in replies}
    assert len(tasks) == 1
    assert await Call.objects.filter(state=State.REFUSED).acount() == 1
    task = {"taskId": tasks.pop()}
    assert (await agent.ask("tasks/get", task)).result["status"] == "failed"
    assert "is reached: 1 call per hour." in (await agent.ask("tasks/result", task)).text
    (listed,) = (await agent.ask("tasks/list")).result["tasks"]
    assert listed["taskId"] == task["taskId"]


async def test_and_one_of_the_tasks_extension(play: Play, scout: Agent, bob: User) -> None:
    await limit(amount=1, period="hour")
    token = await sync_to_async(accounts.issue_token)(scout, by=bob)
    agent = play(MODERN, token=token, capabilities=TASKS)
    await agent.call("rec.echo", {"text": "first"})

    replies = await asyncio.gather(*(agent.call("rec.echo", {"text": str(n)}) for n in range(20)))

    assert all(one.result["isError"] for one in replies)
    assert len({one.call_id for one in replies}) == 1
    assert await Call.objects.filter(state=State.REFUSED).acount() == 1


async def test_whom_nobody_could_record_is_told_so_and_the_next_is_recorded(
    two: Two, scout_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await limit(amount=1, period="hour")
    await ask(two[0], scout_token, "first")
    journal = two[0].call_runtime.journal

    async def fail(*_lines: Any, **_given: Any) -> Any:
        await asyncio.sleep(0.01)
        raise RecordUnavailable("Not now.")

    monkeypatch.setattr(journal, "write", fail)
    flood = (ask(two[0], scout_token, str(n)) for n in range(5))
    told = await asyncio.gather(*flood, return_exceptions=True)
    monkeypatch.undo()

    assert {type(one) for one in told} == {RecordUnavailable}
    refused = await ask(two[0], scout_token, "last")
    assert await Call.objects.filter(pk=refused.call_id, state=State.REFUSED).aexists()


async def test_shares_of_a_high_rate_exceed_it_by_no_more_than_one_for_each_gateway(
    two: Two, scout_token: str
) -> None:
    made = await limit(amount=6_000, period="minute", burst=40)
    share = share_of(await sync_to_async(compiled)(made))
    assert share == 4
    began = time.monotonic()

    results = await asyncio.gather(*(ask(two[n % 2], scout_token, str(n)) for n in range(120)))

    took_s = time.monotonic() - began
    allowed = states(results)["succeeded"]
    assert 40 - 2 * share <= allowed <= 40 + 100 * took_s + 2 * share


async def test_each_agent_has_its_own_and_a_new_session_is_no_way_out(
    two: Two, scout_token: str, scout: Agent, bob: User, toolset: Toolset
) -> None:
    await limit(amount=1, period="hour")
    again = await sync_to_async(accounts.issue_token)(scout, by=bob)
    results = [
        await ask(two[0], scout_token, request_key="first session"),
        await ask(two[1], scout_token, request_key="second session", client="another"),
        await ask(two[1], again),
    ]

    assert states(results) == {"succeeded": 1, "limit": 2}


async def test_a_person_has_one_count_for_all_their_agents(
    two: Two, toolset: Toolset, scout_token: str, bob: User
) -> None:
    await limit(amount=1, period="hour", per=["person"])
    _clerk, of_bob = await sync_to_async(another)("clerk", bob, toolset)
    alice = await sync_to_async(User.objects.create_user)("alice-too")
    _page, of_alice = await sync_to_async(another)("page", alice, toolset)

    results = [await ask(two[n % 2], one) for n, one in enumerate((scout_token, of_bob, of_alice))]

    assert [one.refusal for one in results] == ["", "limit", ""]


async def test_each_toolset_has_its_own(
    two: Two, toolset: Toolset, scout_token: str, scout: Agent, bob: User
) -> None:
    def second() -> None:
        made = registry.create_toolset("shelf", by=bob)
        registry.add_server(made, toolset.servers.get(), by=bob)
        registry.assign(made, scout, by=bob)

    await sync_to_async(second)()
    await limit(amount=1, period="hour", per=["toolset"])

    results = [await ask(two[0], scout_token, place=one) for one in ("desk", "desk", "shelf")]

    assert [one.refusal for one in results] == ["", "limit", ""]


async def test_each_server_has_its_own(
    two: Two, toolset: Toolset, scout_token: str, upstream: Recorder, bob: User
) -> None:
    await sync_to_async(add_server)("rec2", toolset, upstream, by=bob)
    await limit(amount=1, period="hour", per=["server"])

    tools = ("rec.echo", "rec.say", "rec2.echo")
    results = [await ask(two[0], scout_token, tool=one) for one in tools]

    assert [one.refusal for one in results] == ["", "limit", ""]


async def test_each_risk_has_its_own(two: Two, scout_token: str) -> None:
    await limit(amount=1, period="hour", per=["risk"])

    results = [await ask(two[0], scout_token, tool=one) for one in RISKS]

    assert [one.refusal for one in results] == ["", "limit", ""]


async def test_bytes_are_counted_and_what_never_fits_is_told_so(two: Two, scout_token: str) -> None:
    await limit("bytes", 200, period="hour")

    first = await ask(two[0], scout_token, "x" * 100)
    second = await ask(two[1], scout_token, "x" * 100)
    never = await ask(two[1], scout_token, "x" * 300)

    assert states([first, second, never]) == {"succeeded": 1, "limit": 2}
    assert never.answer is not None
    assert never.answer.refusal is not None
    assert never.answer.refusal.again == "changed"
    assert never.reason.endswith("The call alone is more than that.")


async def test_a_soft_limit_asks_people_and_says_why(two: Two, scout_token: str) -> None:
    await limit(amount=1, effect="ask")
    await ask(two[0], scout_token)

    held = await ask(two[1], scout_token, "second")

    assert held.state == State.HELD
    call = await Call.objects.aget(pk=held.call_id)
    assert call.reason == "Limit “calls 0” is reached: 1 call per minute."
    assert await Approval.objects.filter(call=call).aexists()


async def test_a_limit_that_only_watches_lets_everything_run_and_notes_it_once(
    two: Two, scout_token: str
) -> None:
    await limit(amount=1, mode="shadow")
    await limit("cost", 1, mode="shadow")

    results = [await ask(two[0], scout_token, str(n)) for n in range(4)]

    assert states(results) == {"succeeded": 4}
    await asyncio.gather(*(one for one in two[0]._calls if "_write" in str(one.get_coro())))
    entries = [one async for one in Entry.objects.filter(action="limit.reached")]
    assert sorted(one.details["limit"] for one in entries) == ["calls 0", "cost 1"]


async def test_a_budget_is_exact_whoever_asks_at_once(
    two: Two, scout_token: str, upstream: Recorder
) -> None:
    await limit("cost", 10, cost=3, period="month")

    results = await asyncio.gather(*(ask(two[n % 2], scout_token, str(n)) for n in range(20)))

    assert states(results) == {"succeeded": 3, "limit": 17}
    assert len(upstream.calls) == 3
    counter = await LimitCounter.objects.aget()
    assert counter.spent == 9
    assert counter.label == "scout"


async def test_an_argument_says_what_a_call_costs(two: Two, scout_token: str) -> None:
    await limit("cost", "0.3", cost_argument="order.total")

    async def order(total: Any) -> str:
        arguments = {"text": "x", "order": {"total": total}}
        result = await ask(two[0], scout_token, tool="rec.say", arguments=arguments)
        return result.reason or result.state.value

    said = [await order(total) for total in (0.1, 0.1, "0.1", -1, 0.2, 0.1, 0.0)]

    wrong = (
        "Limit “cost 0”: it counts the argument “order.total”, which has to be a number of at "
        "least 0."
    )
    assert said[2:4] == [wrong, wrong]
    assert said[4].startswith("Limit “cost 0” is reached: 0.3 EUR per minute.")


async def test_what_certainly_was_not_executed_gives_its_money_back(
    two: Two, scout_token: str, bob: User
) -> None:
    await limit("cost", 1, cost=1, period="day")
    await limit("concurrency", 1)
    first = await ask(two[0], scout_token, hold_for="A person is to see it.")
    assert first.state == State.HELD
    assert states([await ask(two[1], scout_token, "meanwhile")]) == {"limit": 1}

    await sync_to_async(cancel_now)(first.call_id, by=bob.actor)

    assert states([await ask(two[1], scout_token, "now")]) == {"succeeded": 1}
    assert states([await ask(two[0], scout_token, "spent")]) == {"limit": 1}


async def test_what_may_have_been_executed_keeps_it(two: Two, scout_token: str) -> None:
    await limit("cost", 1, cost=1, period="day")
    await ask(two[0], scout_token)
    await Call.objects.filter(executed=Executed.YES).aget()

    results = [await ask(two[n % 2], scout_token, str(n)) for n in range(3)]

    assert states(results) == {"limit": 3}
    assert await LimitUse.objects.acount() == 0


async def test_a_new_month_is_a_new_budget(two: Two, scout_token: str) -> None:
    await limit("cost", 1, cost=1, period="month")
    await ask(two[0], scout_token)
    assert states([await ask(two[0], scout_token, "2")]) == {"limit": 1}

    before = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    await LimitCounter.objects.aupdate(since=before - timedelta(days=20))

    assert states([await ask(two[0], scout_token, "3")]) == {"succeeded": 1}


@pytest.mark.long
async def test_no_more_run_at_the_same_time(two: Two, scout_token: str, upstream: Recorder) -> None:
    await limit("concurrency", 2)
    going = [asyncio.create_task(ask(two[n], scout_token, tool="rec.hang")) for n in (0, 1)]
    while await Call.objects.filter(state=State.RUNNING).acount() < 2:
        await asyncio.sleep(0.01)

    third = await ask(two[0], scout_token, tool="rec.hang")
    upstream.release()
    await asyncio.gather(*going)

    assert third.reason.endswith("Ask again when one of them has ended.")
    assert states([await ask(two[1], scout_token)]) == {"succeeded": 1}


async def test_the_same_again_and_again_asks_people(two: Two, scout_token: str) -> None:
    await limit("repeats", 3, effect="ask", minutes=5, per=["agent", "tool"])

    same = [await ask(two[n % 2], scout_token) for n in range(4)]
    other = await ask(two[0], scout_token, "other")

    assert states(same) == {"succeeded": 3, "held": 1}
    assert other.state == State.HELD
    assert other.reason == "Limit “repeats 0”: after 3 identical calls in a row, for 5 minutes."
    for runtime in two:
        await asyncio.gather(*(one for one in runtime._calls if "_write" in str(one.get_coro())))
    told = [one async for one in Entry.objects.filter(action="limit.reached")]
    # Once by each gateway, however many calls it holds.
    assert [(one.agent, one.reason) for one in told] == [("scout", other.reason)] * 2
    await LimitCounter.objects.aupdate(until=datetime.now(UTC))
    assert (await ask(two[0], scout_token, "later")).state == State.SUCCEEDED


async def test_failures_in_a_row_ask_people(two: Two, scout_token: str) -> None:
    await limit("failures", 2, effect="ask", minutes=5, per=["agent", "tool"])

    results = [await ask(two[n % 2], scout_token, str(n), tool="rec.fail") for n in range(4)]

    assert states(results) == {"failed": 2, "held": 2}
    assert (await ask(two[0], scout_token)).state == State.SUCCEEDED


async def test_a_key_does_not_stand_for_what_a_limit_refused(two: Two, scout_token: str) -> None:
    budget = await limit("cost", 1, cost=1, period="day")
    await ask(two[0], scout_token, "first")
    refused = [await ask(two[0], scout_token, "again", key="k-1") for _ in range(2)]
    assert states(refused) == {"limit": 2}

    await Limit.objects.filter(pk=budget.pk).aupdate(amount=2)

    done = [await ask(two[n], scout_token, "again", key="k-1") for n in (0, 1)]
    assert states(done) == {"succeeded": 2}
    assert done[1].joined


async def test_a_raised_rate_leaves_room_at_once(two: Two, scout_token: str) -> None:
    made = await limit(amount=1, period="month")
    before = [await ask(two[0], scout_token, str(n)) for n in (1, 2)]
    made.amount = Decimal(3)

    await sync_to_async(save_limit)(made, by=SYSTEM)

    after = [await ask(two[n % 2], scout_token, f"raised {n}") for n in range(3)]
    assert states(before) == {"succeeded": 1, "limit": 1}
    assert states(after) == {"succeeded": 2, "limit": 1}


async def test_a_clock_that_was_put_back_uses_no_more_than_all(two: Two, scout_token: str) -> None:
    await limit(amount=1000, period="second", burst=5)
    await ask(two[0], scout_token)
    await LimitCounter.objects.aupdate(tat=datetime(2100, 1, 1, tzinfo=UTC))

    # By the other one, which has no share of it: all of it is used, and is free soon.
    refused = await ask(two[1], scout_token, "y")

    assert refused.refusal == "limit"
    counter = await LimitCounter.objects.aget()
    assert counter.tat is not None
    assert counter.tat < datetime(2100, 1, 1, tzinfo=UTC)


async def test_costs_beyond_all_measure_break_nothing(two: Two, scout_token: str) -> None:
    await limit("cost", 1, cost_argument="order.total", mode="shadow")
    most = {"text": "x", "order": {"total": 9_007_199_254_740_991}}
    await ask(two[0], scout_token, arguments=most)
    await LimitCounter.objects.aupdate(spent=99_999_999_999_999_999_999)

    assert states([await ask(two[0], scout_token, arguments=most | {"text": "y"})]) == {
        "succeeded": 1
    }


async def test_an_agent_is_told_when_to_come_back(play: Play, scout: Agent, bob: User) -> None:
    await limit(amount=1, period="hour")
    # Who does not know this token looks again, and then knows the limit too.
    agent = play(token=await sync_to_async(accounts.issue_token)(scout, by=bob))
    await agent.call("rec.echo", {"text": "x"})

    reply = await agent.call("rec.echo", {"text": "y"})

    assert reply.result["isError"] is True
    assert "Ask again in 60 min." in reply.text
    refusal = reply.result["_meta"]["countersign/refusal"]
    assert (refusal["kind"], refusal["rule"]) == ("limit", "calls 0")
    assert refusal["after_s"] <= 3600


async def test_rest_says_it_in_fields(
    rest: Rest,  # noqa: F811
    scout: Agent,
    bob: User,
) -> None:
    made = await limit(amount=1, period="hour")
    rest.token = await sync_to_async(accounts.issue_token)(scout, by=bob)
    await rest.call("rec.echo", {"text": "x"})

    reply = await rest.call("rec.echo", {"text": "y"})

    assert reply.status == 429
    assert 3500 < int(reply.headers["Retry-After"]) <= 3600
    assert reply.headers["RateLimit-Policy"] == f'"limit-{made.pk}";q=1;w=3600'
    assert reply.headers["RateLimit"].startswith(f'"limit-{made.pk}";r=0;t=3')


async def test_rest_says_a_quota_below_one_as_one(toolset: Toolset) -> None:
    made = await limit("cost", Decimal("0.5"), period="day")
    small = await sync_to_async(compiled)(made)
    reached = LimitReached(small, CounterKey("", "all", None, None), 60.0)

    assert rate_limit(reached)["RateLimit-Policy"] == f'"limit-{made.pk}";q=1;w=86400'


async def test_what_a_budget_refuses_uses_up_no_rate(two: Two, scout_token: str) -> None:
    await limit(amount=3, period="hour")
    budget = await limit("cost", 1, cost=1, period="day")
    first = await ask(two[0], scout_token, "first")
    refused = [await ask(two[0], scout_token, str(n)) for n in range(5)]
    await Limit.objects.filter(pk=budget.pk).aupdate(amount=9)
    await returned(two[0])

    # By the other one, which knows only what PostgreSQL does.
    after = [await ask(two[1], scout_token, f"after {n}") for n in range(3)]

    assert states([first, *refused]) == {"succeeded": 1, "limit": 5}
    assert states(after) == {"succeeded": 2, "limit": 1}


@pytest.mark.long
@pytest.mark.parametrize(
    ("share_s", "return_s"), [(0.5, 0.05), (0.03, 0.3)], ids=["as it is", "shares end before"]
)
async def test_a_flood_that_a_budget_refuses_starves_no_other_agent(
    share_s: float,
    return_s: float,
    two: Two,
    scout_token: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limit_shares, "SHARE_S", share_s)
    monkeypatch.setattr(limit_shares, "RETURN_S", return_s)
    # Otherwise one may believe for a while that nothing is left, which the other gave back.
    monkeypatch.setattr(limit_shares, "BELIEVED_S", 0.0)
    await limit("cost", 1, cost=1, period="day", per=[], tool="echo")
    await limit(amount=6, period="hour", per=[])
    await ask(two[0], scout_token, "first")

    flood = [
        result
        for _ in range(4)
        for result in await asyncio.gather(
            *(ask(two[n % 2], scout_token, str(n)) for n in range(10)),
        )
    ]
    for gateway in two:
        await returned(gateway)

    others = [await ask(two[n % 2], scout_token, str(n), tool="rec.say") for n in range(7)]
    assert states(flood) == {"limit": 40}
    assert states(others) == {"succeeded": 5, "limit": 1 + 1}


@pytest.mark.long
@pytest.mark.parametrize(
    "refused",
    [{"arguments": {"text": "x"}}, {"hold_for": "A person is to see it.", "may_hold": False}],
    ids=["nobody can say its cost", "it may not wait"],
)
async def test_a_call_refused_beside_a_rate_takes_nothing_of_it(
    two: Two, scout_token: str, refused: dict[str, Any]
) -> None:
    await limit(amount=1, period="hour")
    if "arguments" in refused:
        await limit("cost", 5, cost_argument="order.total")
    order = {"text": "x", "order": {"total": 1}}

    first = await ask(two[0], scout_token, **{"arguments": order, **refused})
    await returned(two[0])

    assert first.state == State.REFUSED
    assert states([await ask(two[1], scout_token, arguments=order)]) == {"succeeded": 1}


async def test_what_cannot_be_counted_now_uses_up_no_other_rate(
    two: Two, scout_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await limit(amount=1, period="hour")
    await limit("bytes", 999, period="hour")
    _lose(monkeypatch, two[0], "bytes")
    with pytest.raises(RecordUnavailable):
        await ask(two[0], scout_token)
    monkeypatch.undo()
    await returned(two[0])

    assert states([await ask(two[1], scout_token)]) == {"succeeded": 1}


async def test_what_was_here_is_here_again_when_the_rest_cannot_be_counted(
    two: Two, scout_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await limit(amount=20, period="second")
    await ask(two[0], scout_token)
    (share,) = two[0].limits._shares.values()
    share.left = 1.0
    # As long as it takes.
    share.ends_at = share.busy_until = math.inf
    await limit("bytes", 999, period="hour")
    _lose(monkeypatch, two[0], "bytes")

    with pytest.raises(RecordUnavailable):
        await ask(two[0], scout_token)

    assert share.left == 1.0


def _lose(monkeypatch: pytest.MonkeyPatch, runtime: Runtime, kind: str) -> None:
    """Limits of this kind cannot be counted."""
    whole = runtime.limits._ask

    async def ask_for(orders: Sequence[LeaseOrder]) -> Any:
        if any(one.limit.kind == kind for one in orders):
            raise RecordUnavailable("Not now.")
        return await whole(orders)

    monkeypatch.setattr(runtime.limits, "_ask", ask_for)


@pytest.mark.long
async def test_ten_rates_are_asked_for_in_one_statement(
    two: Two, scout_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        await limit(("calls", "bytes")[number % 2], 900 + number, period="minute")
    asked = []
    whole = two[0].limits._ask

    async def ask_for(orders: Sequence[LeaseOrder]) -> Any:
        asked.append(len(orders))
        return await whole(orders)

    monkeypatch.setattr(two[0].limits, "_ask", ask_for)
    assert states([await ask(two[0], scout_token)]) == {"succeeded": 1}

    assert asked == [10]


@pytest.mark.long
async def test_the_same_that_waits_already_is_counted_once(two: Two, scout_token: str) -> None:
    await limit(amount=2, period="hour")
    waits = [await ask(two[0], scout_token, hold_for="A person is to see it.") for _ in range(4)]
    await returned(two[0])

    assert len({one.call_id for one in waits}) == 1
    assert states([await ask(two[1], scout_token, "another")]) == {"succeeded": 1}


async def returned(runtime: Runtime) -> None:
    """What refused calls took is PostgreSQL's again."""
    back = [one for one in runtime._calls if "_return" in str(one) or "_put_back" in str(one)]
    await asyncio.gather(*back)
