"""Break-glass goes past no budget, whatever became of the budget since the call was requested."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from approvals import services
from approvals.models import Approval, BreakGlass, Vote
from calls.models import Call
from calls.record.states import State
from gateway.process.runtime import Runtime
from policies.models import Effect, Limit, LimitCounter, LimitUse
from registry.models import Toolset
from tests.accounts.authenticator import Device
from tests.console import scenery
from tests.gateway.conftest import add_rule
from tests.gateway.limiting import ask, limit, states
from tests.notifications.test_break_glass import as_carol, carol, device, dora, is_on, press

# Workers may have taken it already.
RUNS = (State.QUEUED, State.RUNNING, State.SUCCEEDED)


__all__ = ["as_carol", "carol", "device", "dora", "is_on"]

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def runtime(toolset: Toolset) -> AsyncIterator[Runtime]:
    await sync_to_async(add_rule)(Effect.ASK, "say")
    made = Runtime()
    await made.start()
    yield made
    await made.aclose()


async def hold(runtime: Runtime, token: str, **more: Any) -> UUID:
    """A rule requires approval of it."""
    held = await ask(runtime, token, tool="rec.say", **more)
    assert held.state == State.HELD
    return held.call_id


async def state(call_id: UUID) -> str:
    return (await Call.objects.aget(pk=call_id)).state


async def spent() -> Any:
    return (await LimitCounter.objects.aget()).spent


async def test_what_a_budget_holds_for_the_call_is_used_once(
    runtime: Runtime, scout_token: str, as_carol: Client, device: Device, dora: User
) -> None:
    await limit("cost", 2, period="month")
    held = await hold(runtime, scout_token)

    said = await sync_to_async(press)(as_carol, held, device, dora)

    assert "The call is sent." in said
    assert await state(held) in RUNS
    assert await spent() == 1
    after = [await ask(runtime, scout_token, str(n)) for n in range(2)]
    assert states(after) == {"succeeded": 1, "limit": 1}


@sync_to_async
def lower() -> None:
    Limit.objects.update(amount="0.5")


async def add_small(runtime: Runtime, token: str) -> None:
    await limit("cost", 1, cost=2, name="Small", period="month")


async def add_unknown(runtime: Runtime, token: str) -> None:
    await limit("cost", 9, cost_argument="order.total", name="Orders", period="month")


async def use_up(runtime: Runtime, token: str) -> None:
    """In a new month."""
    await LimitCounter.objects.aupdate(since=LONG_AGO)
    after = [await ask(runtime, token, str(n)) for n in range(3)]
    assert states(after) == {"succeeded": 2, "limit": 1}


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        (lambda *_: lower(), "Limit “cost 0” is reached: 0.5 EUR per month."),
        (add_small, "Limit “Small” is reached: 1 EUR per month."),
        (add_unknown, "it counts the argument “order.total”"),
        (use_up, "Limit “cost 0” is reached: 2 EUR per month."),
    ],
)
async def test_a_budget_that_no_longer_covers_the_call_stops_it(
    runtime: Runtime,
    scout_token: str,
    as_carol: Client,
    device: Device,
    dora: User,
    meanwhile: Any,
    said: str,
) -> None:
    await limit("cost", 2, period="month")
    held = await hold(runtime, scout_token)
    await meanwhile(runtime, scout_token)

    shown = await sync_to_async(press)(as_carol, held, device, dora)

    assert said in shown
    assert await state(held) == State.HELD
    assert not await BreakGlass.objects.aexists()


@pytest.mark.long
async def test_a_new_budget_or_month_counts_the_call(
    runtime: Runtime, scout_token: str, as_carol: Client, device: Device, dora: User
) -> None:
    held = await hold(runtime, scout_token)
    await limit("cost", 2, period="month")

    await sync_to_async(press)(as_carol, held, device, dora)

    assert await state(held) in RUNS
    assert await spent() == 1
    second = await hold(runtime, scout_token, arguments={"text": "second"})
    assert await spent() == 2
    await LimitCounter.objects.aupdate(since=LONG_AGO)

    await sync_to_async(press)(as_carol, second, device, dora)

    assert await state(second) in RUNS
    assert await spent() == 1
    assert (await LimitUse.objects.aget(call_id=second)).amount == 1


@pytest.mark.long
@pytest.mark.parametrize("tool", ["rec.echo", "rec.say"])
async def test_what_an_exhausted_budget_holds_runs_by_no_glass(
    runtime: Runtime, scout_token: str, as_carol: Client, device: Device, dora: User, tool: str
) -> None:
    await limit("cost", 1, period="month", effect="ask")
    await ask(runtime, scout_token, "first")
    held = await ask(runtime, scout_token, "second", tool=tool)
    assert held.state == State.HELD

    said = await sync_to_async(press)(as_carol, held.call_id, device, dora)

    assert "No rule alone requires its approval" in said
    assert await state(held.call_id) == State.HELD


async def test_a_card_says_for_which_budget_its_votes_do_not_suffice(
    runtime: Runtime, scout_token: str, alice: User, client: Client
) -> None:
    await limit("cost", 1, period="month")
    held = await hold(runtime, scout_token)
    await LimitCounter.objects.aupdate(since=LONG_AGO)

    def vote(person: User) -> str:
        approval = Approval.objects.select_related("call").get(pk=held)
        services.vote(approval, by=person, approve=True, seen_digest=approval.call.call_digest)
        client.force_login(alice)
        return client.get(reverse("approvals:detail", args=[held])).text

    def vote_and_look() -> str:
        (threshold,) = Approval.objects.get(pk=held).thresholds
        Approval.objects.update(thresholds=[{**threshold, "approve": 2}])
        assert "a limit has no room" not in vote(alice)
        roles = list(alice.groups.all())
        # Her vote does not count meanwhile, and then it does again.
        alice.groups.clear()
        vote(scenery.person("paula", Role.APPROVER))
        alice.groups.set(roles)
        # Others have spent the money.
        LimitCounter.objects.update(since=timezone.now().replace(day=1), spent=1)
        LimitUse.objects.all().delete()
        services.reconsider(Approval.objects.get(pk=held))
        return client.get(reverse("approvals:detail", args=[held])).text

    said = await sync_to_async(vote_and_look)()

    assert await state(held) == State.HELD
    assert "Its votes suffice, but a limit has no room for it now." in said
    assert "Limit “cost 0” is reached: 1 EUR per month." in said


@pytest.mark.long
async def test_calls_approved_in_a_later_month_exceed_no_hard_budget(
    runtime: Runtime, scout_token: str, alice: User
) -> None:
    await limit("cost", 1, period="month")
    held = []
    for n in range(5):
        held.append(await hold(runtime, scout_token, arguments={"text": str(n)}))
        await LimitCounter.objects.aupdate(since=LONG_AGO)

    def approve(call_id: UUID) -> str:
        approval = Approval.objects.select_related("call").get(pk=call_id)
        digest = approval.call.call_digest
        try:
            services.vote(approval, by=alice, approve=True, seen_digest=digest)
        except services.DecisionRefused as error:
            return str(error)
        return ""

    said = [await sync_to_async(approve)(one) for one in held]

    why = (
        "Limit “cost 0” is reached: 1 EUR per month. The call stays pending; your vote is not kept."
    )
    assert said == ["", why, why, why, why]
    assert await state(held[0]) in RUNS
    assert [await state(one) for one in held[1:]] == [State.HELD] * 4
    assert await spent() == 1
    assert await Vote.objects.acount() == 1
