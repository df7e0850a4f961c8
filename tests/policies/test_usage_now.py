"""Pages show usage as the next call would find it, and keep nothing of that."""

from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Agent
from accounts.roles import Role
from core.ids import uuid7
from policies.models import LimitCounter, LimitUse
from tests.console import scenery
from tests.gateway.limiting import add_limit

pytestmark = pytest.mark.django_db


def counted(agent: Agent, kind: str) -> LimitCounter:
    """Two uses, one of a call that was never opened."""
    made = add_limit(kind, 5, **({"period": "month"} if kind == "cost" else {}))
    counter = LimitCounter.objects.create(
        limit=made, key=f"agent:{agent.pk}", label=agent.name, agent_id=agent.pk, spent=2
    )
    LimitUse.objects.create(counter=counter, call_id=uuid7(), amount=1)
    return counter


def test_a_call_that_ended_is_not_shown_as_running(client: Client, scout: Agent) -> None:
    counter = counted(scout, "concurrency")
    client.force_login(scenery.person("ada", *Role))

    page = client.get(reverse("policies:limit", args=[counter.limit_id])).text
    piece = client.get(reverse("policies:agent_limits", args=[scout.name])).text

    assert "1 of 5 used" in page
    assert "1 of 5 used" in piece
    counter.refresh_from_db()
    assert counter.spent == Decimal(2)
    assert LimitUse.objects.count() == 1
