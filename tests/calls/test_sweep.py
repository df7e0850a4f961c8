"""What a worker looks for once a second, when the database's clock is put forward."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Agent, User
from calls.models import Call
from calls.queue.claiming import claim
from calls.record.states import State
from config import sweep
from registry.models import Toolset
from tests.calls import rows


class Clock:
    """The database's, put forward at will."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return timezone.now() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sweep, "database_time", clock.now)
    return clock


@pytest.mark.django_db
def test_a_call_outlives_a_step_of_the_databases_clock(
    toolset: Toolset, scout: Agent, bob: User, clock: Clock, settings: Any
) -> None:
    settings.LEASE_S = 0.5
    (call_id,) = rows.queue(scout, bob, "hang")
    assert claim(call_id, owner="one") is not None
    worker = sweep.Sweep()
    worker._once()

    clock.ahead = timedelta(hours=2)
    Call.objects.filter(pk=call_id).update(lease_until=timezone.now() - clock.ahead)
    worker._once()

    assert Call.objects.get(pk=call_id).state == State.RUNNING


@pytest.mark.django_db
def test_a_call_whose_lease_ran_out_is_lost(
    toolset: Toolset, scout: Agent, bob: User, clock: Clock, settings: Any
) -> None:
    settings.LEASE_S = 0
    (call_id,) = rows.queue(scout, bob, "hang")
    assert claim(call_id, owner="one") is not None
    worker = sweep.Sweep()

    worker._once()

    assert Call.objects.get(pk=call_id).state == State.UNKNOWN
