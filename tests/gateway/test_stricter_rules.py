"""A stricter rule behind another one, through the doors of agents and of people."""

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from accounts.models import User
from approvals.models import Approval
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from tests.approvals.test_quorum import approver
from tests.gateway.agent import Agent
from tests.gateway.conftest import AddRule, until
from tests.gateway.test_granted import granted, say
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def press_approve(by: User) -> str:
    """What the person's browser sends; the page that comes of it."""
    approval = Approval.objects.select_related("call").get()
    client = Client()
    client.force_login(by)
    seen = {"seen": approval.call.call_digest, "shown": str(approval.pk)}
    return client.post(reverse("approvals:approve", args=[approval.pk]), seen, follow=True).text


@pytest.mark.long
async def test_two_of_payments_are_two_although_an_earlier_rule_asks_one(
    agent: Agent, rule: AddRule, stack: Stack, alice: User, upstream: Recorder
) -> None:
    assert stack.worker
    carol = await sync_to_async(approver)("carol", "payments")
    dora = await sync_to_async(approver)("dora", "payments")
    await rule(Effect.ASK, "*", position=1)
    await rule(
        Effect.ASK, "echo", position=2, thresholds=[{"approve": 2, "from": "group:payments"}]
    )

    await agent.call("rec.echo", {"text": "pay"})
    refused = await press_approve(alice)
    await press_approve(carol)

    call = await Call.objects.aget()
    assert call.state == State.HELD
    assert "The rule asks other people: payments." in refused
    assert upstream.received == []
    await press_approve(dora)
    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())


async def test_a_grant_does_not_answer_for_a_rule_that_came_later(
    agent: Agent, rule: AddRule, stack: Stack, alice: User
) -> None:
    """Nor does it for one that stands behind the rule for which it was made."""
    await rule(Effect.ASK, "echo", position=1)
    await granted(agent, stack, alice)
    await sync_to_async(approver)("carol")
    await rule(Effect.ASK, "*", position=2, thresholds=[{"approve": 2}])

    assert (await say(agent, "hello again")).result["resultType"] == "input_required"
