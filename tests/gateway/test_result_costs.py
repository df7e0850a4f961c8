"""Budgets of which a number in the result says what was spent, instead of what was reserved."""

import json
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from inspection.results import ResultRules
from policies.models import LimitCounter, LimitUse
from registry.models import Tool
from registry.result_rules import set_result_rules
from tests.gateway.agent import MODERN, TASKS
from tests.gateway.conftest import Play, until
from tests.gateway.limiting import ask, limit, states
from tests.gateway.test_limits import Two, two
from tests.gateway.test_stricter_rules import press_approve
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

__all__ = ["two"]

pytestmark = pytest.mark.django_db(transaction=True)


def costing(cost: str, **more: Any) -> bytes:
    said = json.dumps({"content": [], **more})
    return f'{said[:-1]}, "structuredContent": {{"usage": {{"cost": {cost}}}}}}}'.encode()


async def budget(amount: str = "10", cost: str = "1", **more: Any) -> None:
    path = "structuredContent.usage.cost"
    await limit("cost", amount, cost=cost, cost_result=path, period="month", **more)


async def settled(two: Two, token: str, tool: str = "rec.say") -> Decimal:
    """What is spent without the call that this makes to find it out."""
    await ask(two[0], token, "settles", tool=tool)
    counter = await LimitCounter.objects.aget()
    own = await LimitUse.objects.alast()
    return counter.spent - (own.amount if own else 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("cost", "counted"),
    [
        ("0.25", "0.25"),
        ("4.5", "4.5"),
        ("0", "0"),
        ("1e1", "10"),
        ("0.00000001", "0.000001"),
        # What is no amount leaves what was reserved.
        *((wrong, "1") for wrong in ('"3"', "-2", "null", "1e400", "[4]", "true")),
    ],
)
async def test_the_result_says_what_was_spent(
    two: Two, scout_token: str, upstream: Recorder, cost: str, counted: str
) -> None:
    await budget("100")
    upstream.results["say"] = costing(cost)

    assert states([await ask(two[0], scout_token, tool="rec.say")]) == {"succeeded": 1}

    assert (await LimitCounter.objects.aget()).spent == 1
    assert await settled(two, scout_token) == Decimal(counted)


@pytest.mark.long
async def test_the_bytes_of_results_are_counted(
    two: Two, scout_token: str, upstream: Recorder
) -> None:
    await limit("cost", 200, cost=1, cost_result="$size", period="day", unit="bytes")
    body = upstream.results["say"] = costing("1", text="é" * 60)

    first = await ask(two[0], scout_token, tool="rec.say")

    assert states([first]) == {"succeeded": 1}
    assert await settled(two, scout_token) == len(body) > 200
    assert states([await ask(two[1], scout_token, "more", tool="rec.say")]) == {"limit": 1}


@pytest.mark.long
async def test_what_is_spent_stands_in_the_way_of_the_next_call_at_every_gateway(
    two: Two, scout_token: str, upstream: Recorder
) -> None:
    await budget("10")
    upstream.results["say"] = costing("9.5")

    results = [await ask(two[n % 2], scout_token, str(n), tool="rec.say") for n in range(3)]

    assert states(results) == {"succeeded": 1, "limit": 2}
    assert "is reached: 10 EUR per month." in results[1].reason


@pytest.mark.long
async def test_a_dear_argument_is_reserved_and_what_is_left_is_given_back(
    two: Two, scout_token: str, upstream: Recorder
) -> None:
    await limit("cost", 10, cost_argument="most", cost_result="structuredContent.usage.cost")
    upstream.results["say"] = costing("2")

    results = [
        await ask(two[n % 2], scout_token, tool="rec.say", arguments={"n": n, "most": 6})
        for n in range(4)
    ]

    # 2 + 6 and 4 + 6 fit; 6 + 6 does not.
    assert states(results) == {"succeeded": 3, "limit": 1}


async def test_the_entry_of_its_end_has_the_cost_and_cleaning_does_not_hide_it(
    two: Two, scout_token: str, upstream: Recorder
) -> None:
    await budget()
    tool = await Tool.objects.select_related("server").aget(name="say")
    rules = ResultRules(max_bytes=1024, secrets=True)
    await sync_to_async(set_result_rules)(tool, rules, by=None)
    upstream.results["say"] = costing("3", x="long " * 900)

    done = await ask(two[0], scout_token, tool="rec.say")

    entry = await Entry.objects.filter(call_id=done.call_id).order_by("-pk").afirst()
    assert entry is not None
    limit_id = (await LimitCounter.objects.aget()).limit_id
    assert entry.details["costs"] == {str(limit_id): "3.000000"}
    assert entry.details["result"]["found"] == {"cut": 1}
    assert await settled(two, scout_token, "rec.echo") == 3


@pytest.mark.long
async def test_a_worker_settles_too(
    play: Play, two: Two, scout_token: str, stack: Stack, upstream: Recorder, alice: User
) -> None:
    assert stack.worker
    await budget("100")
    await Tool.objects.filter(name="say").aupdate(mode=Tool.Mode.BACKGROUND)
    upstream.results["say"] = costing("7")

    await play(MODERN, capabilities=TASKS).call("rec.say")
    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())
    assert await settled(two, scout_token, "rec.echo") == 7

    held = await ask(two[0], scout_token, tool="rec.say", hold_for="A person is to see it.")
    assert held.state == State.HELD
    await press_approve(alice)
    await until(lambda: Call.objects.filter(pk=held.call_id, state=State.SUCCEEDED).aexists())
    # The call that settled before costs its 1.
    assert await settled(two, scout_token, "rec.echo") == 7 + 1 + 7


@pytest.mark.long
async def test_a_call_that_outlives_the_window_counts_in_the_next(
    two: Two, scout_token: str, upstream: Recorder
) -> None:
    await budget()
    upstream.results["say"] = costing("4")
    held = await ask(two[0], scout_token, tool="rec.say", hold_for="A person is to see it.")
    assert held.state == State.HELD
    use = await LimitUse.objects.aget()

    # Running when the month ended: then nothing of it counts until its result says its cost.
    first = (await LimitCounter.objects.aget()).since
    assert first is not None
    await LimitCounter.objects.aupdate(since=first.replace(year=first.year - 1))
    await ask(two[1], scout_token)

    await use.arefresh_from_db()
    assert use.amount == 0


async def test_a_failure_gives_back_and_an_error_of_the_tool_counts(
    two: Two, scout_token: str, upstream: Recorder
) -> None:
    await budget("100")
    upstream.results["say"] = costing("5", isError=True)

    await ask(two[0], scout_token, tool="rec.say")

    assert await settled(two, scout_token, "rec.echo") == 5
