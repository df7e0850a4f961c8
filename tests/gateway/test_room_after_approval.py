"""Calls that people approve in one go exceed no hard rate, and no number at the same time."""

from collections import Counter
from datetime import UTC, datetime
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from accounts.models import User
from approvals import services
from approvals.models import Approval
from approvals.reevaluation import Reevaluation
from calls.models import Call
from calls.record.states import State
from gateway.process.runtime import Runtime
from policies.limits.approved_calls import APPROVED
from policies.models import LimitCounter, LimitUse
from tests.accounts.authenticator import Device
from tests.gateway.conftest import until
from tests.gateway.limiting import ask, limit, states
from tests.gateway.test_broken_budgets import RUNS, hold, runtime, state
from tests.notifications.test_break_glass import as_carol, carol, device, dora, is_on, press
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

__all__ = ["as_carol", "carol", "device", "dora", "is_on", "runtime"]

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_worker(stack: Stack) -> None:
    """What is approved is queued, and stays so: a worker that other tests started would end it."""
    stack.end_worker()


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that waits is looked at in one look, however busy the machine is."""
    monkeypatch.setattr("approvals.reevaluation.AT_MOST_S", 60.0)


def approve(client: Client, person: User, *held: UUID) -> str:
    """Presses Approve for one after the other; returns the last one's page."""
    for pk in held:
        approval = Approval.objects.select_related("call").get(pk=pk)
        services.vote(approval, by=person, approve=True, seen_digest=approval.call.call_digest)
    client.force_login(person)
    return client.get(reverse("approvals:detail", args=[held[-1]])).text


async def pending(*held: UUID) -> int:
    found = Counter([await state(pk) for pk in held])
    assert found.total() == found[State.HELD] + sum(found[one] for one in RUNS)
    return found[State.HELD]


async def make_room() -> None:
    await LimitCounter.objects.exclude(tat=None).aupdate(tat=LONG_AGO)


async def hold_four(runtime: Runtime, token: str) -> list[UUID]:
    """Requested two hours apart, as the limit of two an hour has it."""
    held = [await hold(runtime, token, text=str(n)) for n in range(2)]
    await make_room()
    return held + [await hold(runtime, token, text=str(n)) for n in range(2, 4)]


@pytest.mark.long
async def test_calls_approved_in_one_go_are_sent_as_the_rate_has_room(
    runtime: Runtime, scout_token: str, alice: User, client: Client
) -> None:
    await limit(amount=2, period="hour", name="Few")
    held = await hold_four(runtime, scout_token)

    page = await sync_to_async(approve)(client, alice, *held)

    assert await pending(*held) == 2
    assert "Its votes suffice, but a limit has no room for it now." in page
    assert "Limit “Few” is reached: 2 calls per hour." in page
    look = sync_to_async(Reevaluation().look)
    await look()
    assert await pending(*held) == 2
    await make_room()
    await look()
    assert await pending(*held) == 0
    # Others have their own count, which these calls used when they were requested.
    assert await LimitCounter.objects.filter(key__endswith=APPROVED).acount() == 1


@pytest.mark.long
async def test_a_call_that_waits_for_room_can_be_withdrawn_and_is_not_sent_then(
    runtime: Runtime, scout_token: str, alice: User, client: Client
) -> None:
    await limit(amount=2, period="hour")
    held = await hold_four(runtime, scout_token)
    await sync_to_async(approve)(client, alice, *held)
    assert await pending(*held) == 2

    assert await sync_to_async(services.cancel)(held[3], by=alice.actor)
    await make_room()
    await sync_to_async(Reevaluation().look)()

    assert await pending(*held[:3]) == 0
    assert await state(held[3]) == State.WITHDRAWN


@pytest.mark.long
async def test_a_vote_on_a_call_that_waits_for_room_can_be_taken_back(
    runtime: Runtime, scout_token: str, alice: User, client: Client
) -> None:
    await limit(amount=2, period="hour")
    held = await hold_four(runtime, scout_token)
    await sync_to_async(approve)(client, alice, *held)

    def take_back() -> None:
        approval = Approval.objects.get(pk=held[3])
        services.take_back(approval, by=alice)

    await sync_to_async(take_back)()
    await make_room()
    await sync_to_async(Reevaluation().look)()

    assert await pending(*held[:3]) == 0
    assert await state(held[3]) == State.HELD


@pytest.mark.long
async def test_approved_calls_take_places_among_those_at_the_same_time(
    runtime: Runtime, scout_token: str, alice: User, client: Client, upstream: Recorder
) -> None:
    await limit("concurrency", 1, name="One")
    held = [await hold(runtime, scout_token, text=str(n)) for n in range(2)]

    def approve_both() -> str:
        page = approve(client, alice, *held)
        assert LimitUse.objects.filter(call_id=held[0]).exists()
        return page

    page = await sync_to_async(approve_both)()

    assert "Limit “One” is reached" in page
    assert await state(held[1]) == State.HELD
    assert states([await ask(runtime, scout_token, "another")]) == {"limit": 1}
    await sync_to_async(services.cancel)(held[0], by=alice.actor)

    async def has_ended() -> bool:
        return (await Call.objects.aget(pk=held[0])).finished_at is not None

    await until(has_ended)
    await sync_to_async(Reevaluation().look)()
    assert await state(held[1]) in RUNS


async def test_a_call_that_waits_for_a_place_keeps_nothing_of_a_budget(
    runtime: Runtime, scout_token: str, alice: User, client: Client
) -> None:
    await limit("concurrency", 1, name="One")
    held = [await hold(runtime, scout_token, text=str(n)) for n in range(2)]
    # Later than the requests, which would hold their own part of it.
    await limit("cost", 9, name="Budget", period="month")

    await sync_to_async(approve)(client, alice, *held)

    assert await state(held[1]) == State.HELD
    assert not await LimitUse.objects.filter(call_id=held[1]).aexists()


@pytest.mark.long
async def test_break_glass_goes_past_no_rate(
    runtime: Runtime,
    scout_token: str,
    alice: User,
    as_carol: Client,
    device: Device,
    dora: User,
) -> None:
    await limit(amount=2, period="hour", name="Few")
    held = await hold_four(runtime, scout_token)
    await sync_to_async(approve)(Client(), alice, *held[:2])

    page = await sync_to_async(press)(as_carol, held[2], device, dora)

    assert "Limit “Few” is reached: 2 calls per hour." in page
    assert await state(held[2]) == State.HELD
