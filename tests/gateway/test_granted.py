"""Calls that a standing grant lets run, through the agents' door."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from approvals.bounds import Bound
from approvals.models import Grant, GrantUse
from approvals.standing_approvals import Terms, make, revoke
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from tests.gateway.agent import Agent
from tests.gateway.conftest import AddRule, decide, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

ANY = Bound(("text",), "prefix", prefix="hello")


async def granted(agent: Agent, stack: Stack, alice: User, **terms: Any) -> Grant:
    """From a first call that alice approved and that a worker ran."""
    assert stack.worker
    await agent.call("rec.echo", {"text": "hello"})
    await decide(alice)
    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())
    return await sync_to_async(_make)(alice, Terms(bounds=(ANY,), **terms))


def _make(alice: User, terms: Terms) -> Grant:
    return make(Call.objects.for_page().get(), terms, by=alice)


async def say(agent: Agent, text: str) -> Any:
    return await agent.call("rec.echo", {"text": text})


async def test_what_it_covers_runs_at_once_and_says_who_granted_it(
    agent: Agent, rule: AddRule, stack: Stack, alice: User, upstream: Recorder
) -> None:
    await rule(Effect.ASK, "echo")
    grant = await granted(agent, stack, alice)
    await rule(Effect.ALLOW, "unrelated")

    covered = await say(agent, "hello again")
    other = await say(agent, "goodbye")

    assert covered.result.get("resultType") == "complete"
    call = await Call.objects.aget(pk=covered.call_id)
    assert (call.state, call.effect) == (State.SUCCEEDED, "ask")
    assert call.reason == f"Standing approval {grant.pk} of alice."
    entry = await Entry.objects.aget(call_id=call.pk, seq=1)
    assert (entry.details["grant"], entry.details["granted_by"]) == (grant.pk, "alice")
    assert other.result["resultType"] == "input_required"
    await grant.arefresh_from_db()
    assert grant.uses == 1


@pytest.mark.long
async def test_what_only_looks_as_if_it_were_below_waits_for_people(
    agent: Agent, rule: AddRule, stack: Stack, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    await agent.call("rec.echo", {"text": "minutes/mon.md"})
    await decide(alice)
    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())
    below = Bound(("text",), "prefix", prefix="minutes/")
    await sync_to_async(_make)(alice, Terms(bounds=(below,)))
    await rule(Effect.ALLOW, "unrelated")

    for text in ("%2e%2e/keys", "\uff0e\uff0e/keys", "x\n../keys", "%252e%252e/keys", "x\\..\\.."):
        reply = await say(agent, f"minutes/{text}")
        assert reply.result["resultType"] == "input_required", text

    assert (await say(agent, "minutes/tue.md")).result["resultType"] == "complete"


@pytest.mark.long
async def test_fifty_at_once_use_it_no_more_often_than_granted(
    agent: Agent, rule: AddRule, stack: Stack, alice: User
) -> None:
    await rule(Effect.ASK, "echo")
    grant = await granted(agent, stack, alice, max_uses=7)
    await rule(Effect.ALLOW, "unrelated")

    replies = await asyncio.gather(*(say(agent, f"hello {n}") for n in range(50)))

    done = [reply for reply in replies if reply.result.get("resultType") == "complete"]
    await grant.arefresh_from_db()
    ran = await Call.objects.filter(state=State.SUCCEEDED).acount()
    held = await Call.objects.filter(state=State.HELD).acount()
    assert (len(done), grant.uses, await GrantUse.objects.acount()) == (7, 7, 7)
    # With the one that was approved.
    assert (ran, held) == (8, 43)


@pytest.mark.long
async def test_it_ends_within_a_second_of_being_revoked(
    agent: Agent, rule: AddRule, stack: Stack, alice: User
) -> None:
    await rule(Effect.ASK, "echo")
    grant = await granted(agent, stack, alice)
    await rule(Effect.ALLOW, "unrelated")
    assert (await say(agent, "hello 1")).result["resultType"] == "complete"

    await sync_to_async(revoke)(grant, by=alice)

    # At once: the use itself asks the database, whatever this process knows yet.
    assert (await say(agent, "hello 2")).result["resultType"] == "input_required"


@pytest.mark.long
async def test_deny_wins_over_it(agent: Agent, rule: AddRule, stack: Stack, alice: User) -> None:
    await rule(Effect.ASK, "echo")
    await granted(agent, stack, alice)
    await rule(Effect.DENY, "echo")

    reply = await say(agent, "hello")

    assert reply.result["isError"]
    assert await Call.objects.filter(state=State.REFUSED).acount() == 1
