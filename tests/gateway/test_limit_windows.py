"""Calls that limits block are in the record as what they were, told at once, and seen by misuse
rules; a flood has few entries all the same."""

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from gateway.process.runtime import Runtime
from notifications.cursor import read_entries
from notifications.models import Delivery
from policies import history, lookback, unusual
from policies.history import History
from policies.unusual import Unusual
from tests.console import scenery
from tests.gateway.conftest import until
from tests.gateway.limiting import ask, limit, states
from tests.gateway.test_limits import Two, two  # noqa: F401
from tests.gateway.test_rest import Rest, rest  # noqa: F401
from tests.notifications.conftest import reader

pytestmark = pytest.mark.django_db(transaction=True)


async def entries(action: str) -> list[tuple[str, str, int]]:
    """Each by its limit, its tool and how many calls it counts."""
    found = Entry.objects.filter(action=action).order_by("id")
    return [(one.details["limit"], one.tool, one.details["calls"]) async for one in found]


async def written(runtime: Runtime) -> None:
    """What is on its way into the record is there."""
    await asyncio.gather(*(one for one in runtime._calls if "_write" in str(one.get_coro())))


async def order(runtime: Runtime, token: str, total: Any) -> tuple[Call, str]:
    """The call that its agent is told, and why it is blocked."""
    result = await ask(runtime, token, arguments={"text": "x", "order": {"total": total}})
    assert result.refusal == "limit"
    assert result.answer is not None
    # Room is of no use to what is too much alone, or has no cost.
    is_later = "Ask again in" in result.reason
    assert ("before there is room" in result.answer.text) == is_later
    assert ("Do not ask again unchanged." in result.answer.text) != is_later
    return await Call.objects.aget(pk=result.call_id), result.reason


async def test_each_reason_has_a_call_of_its_own(
    two: Two,  # noqa: F811
    scout_token: str,
) -> None:
    await limit("cost", 10, cost_argument="order.total", period="day")
    spent = {"text": "x", "order": {"total": 8}}
    assert states([await ask(two[0], scout_token, arguments=spent)]) == {"succeeded": 1}

    found = [await order(two[0], scout_token, total) for total in ("2", 11, 3.5)]

    for call, reason in found:
        assert call.reason == reason
    totals = [json.loads(bytes(call.arguments))["order"]["total"] for call, _reason in found]
    assert totals == ["2", 11, 3.5]


async def test_each_tool_has_a_call_of_its_own(
    two: Two,  # noqa: F811
    scout_token: str,
) -> None:
    await limit(amount=1, period="hour")
    await ask(two[0], scout_token)

    tools = ("rec.say", "rec.erase", "rec.say", "rec.erase", "rec.erase")
    refused = [await ask(two[0], scout_token, str(n), tool=one) for n, one in enumerate(tools)]
    await two[0].aclose()

    recorded = {one.pk: one.tool_name async for one in Call.objects.filter(state=State.REFUSED)}
    assert [recorded[one.call_id] for one in refused] == list(tools)
    assert len(recorded) == 2
    assert sorted(await entries("limit.refused")) == [
        ("calls 0", "rec.erase", 2),
        ("calls 0", "rec.say", 1),
    ]


@pytest.mark.long
@pytest.mark.parametrize("blocked", [1, 3])
async def test_a_used_up_budget_is_told_at_once_and_once(
    two: Two,  # noqa: F811
    scout_token: str,
    blocked: int,
) -> None:
    def administrator() -> None:
        reader(scenery.person("ada", Role.ADMINISTRATOR))
        read_entries()

    await sync_to_async(administrator)()
    await limit("cost", 1, cost=1, period="month")
    await ask(two[0], scout_token, "first")

    for n in range(blocked):
        await ask(two[0], scout_token, str(n))
    await written(two[0])

    def told() -> list[tuple[str, str]]:
        read_entries()
        return [(one.event, one.person.username) for one in Delivery.objects.all() if one.person]

    assert await entries("limit.reached") == [("cost 0", "", 1)]
    # The entries of a transaction that has not ended yet are read the next time.
    assert await until(sync_to_async(told)) == [("limit.reached", "ada")]
    await two[0].aclose()
    assert await sync_to_async(told)() == [("limit.reached", "ada")]


async def test_no_limit_is_reached_by_a_call_that_never_fits(
    two: Two,  # noqa: F811
    scout_token: str,
) -> None:
    await limit("cost", 10, cost_argument="order.total", period="day")

    for total in ("2", 11):
        await order(two[0], scout_token, total)
    await written(two[0])

    assert await entries("limit.reached") == []


async def flood(runtime: Runtime, token: str, calls: int) -> None:
    results = [await ask(runtime, token, str(n)) for n in range(calls)]
    assert states(results) == {"limit": calls}
    await written(runtime)


def seen(scout: Agent) -> tuple[Unusual, History]:
    """Just now, for rules and pages."""
    rows = lookback.fetch(unusual.SQL, unusual.parameters(scout.pk))
    assert rows is not None
    past = lookback.fetch(history.SQL, history.arguments(scout.pk, "rec.echo"))
    assert past is not None
    return unusual.of_rows(rows), history.of_rows(past)


async def test_blocked_calls_in_a_row_are_seen_while_they_go_on(
    two: Two,  # noqa: F811
    scout: Agent,
    scout_token: str,
) -> None:
    await limit(amount=1, period="hour")
    await ask(two[0], scout_token)

    await flood(two[0], scout_token, 5)
    found, past = await sync_to_async(seen)(scout)
    assert (found.refusals, found.lately) == (5, 6)
    assert (past.refused_24h, past.calls_1h) == (5, 6)
    assert "Its last 5 calls were blocked or denied." in list(found.reasons())

    # The more there are, the fewer entries each needs.
    await flood(two[0], scout_token, 39)
    found, past = await sync_to_async(seen)(scout)
    # Those since the last of them come with the next.
    assert 40 <= found.refusals <= 44
    assert found.refusals == past.refused_24h
    assert len(await entries("limit.refused")) == 4

    await two[0].aclose()
    found, past = await sync_to_async(seen)(scout)
    assert (found.refusals, past.refused_24h, past.calls_1h) == (44, 44, 45)


async def test_who_was_blocked_before_a_call_that_ran_was_not_in_a_row(
    two: Two,  # noqa: F811
    scout: Agent,
    scout_token: str,
) -> None:
    await limit(amount=1, period="hour", tool="echo")
    await ask(two[0], scout_token)
    await flood(two[0], scout_token, 4)
    await ask(two[0], scout_token, tool="rec.say")
    await two[0].aclose()

    found, past = await sync_to_async(seen)(scout)

    assert [calls for *_limit, calls in await entries("limit.refused")] == [3]
    assert (found.refusals, past.refused_24h) == (0, 4)


async def test_who_reads_a_blocked_call_again_is_told_the_same(
    rest: Rest,  # noqa: F811
    scout: Agent,
    bob: User,
) -> None:
    await limit("cost", 10, name="money", cost_argument="total", period="day", reason="Bob pays")
    rest.token = await sync_to_async(accounts.issue_token)(scout, by=bob)
    await rest.call("rec.echo", {"text": "x", "total": 8})
    too_much = {"text": "x", "total": 11}, "changed", "Bob pays. The call alone is more than that."
    no_room = {"text": "x", "total": 9}, "later", "Bob pays. Ask again in "

    for arguments, again, reason in (too_much, no_room):
        told = (await rest.call("rec.echo", arguments)).last
        read = (await rest.send("GET", f"calls/{told['call']}")).last

        for found in (told["refusal"], read["refusal"]):
            assert (found["kind"], found["rule"]) == ("limit", "money")
            assert found["try_again"] == again
            assert reason in found["reason"]

    wrong = (await rest.call("rec.echo", {"text": 5})).last
    read = (await rest.send("GET", f"calls/{wrong['call']}")).last
    assert (read["refusal"]["kind"], read["refusal"]["try_again"]) == ("invalid", "changed")
