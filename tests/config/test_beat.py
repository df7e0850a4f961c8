"""Celery's clock is asked to end at any moment."""

import signal
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from config.beat import TickingScheduler, ends_later
from config.celery import app


@pytest.fixture(autouse=True)
def celerys_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_statement_is_not_left_halfway() -> None:
    done = []

    def statement() -> None:
        with ends_later():
            signal.raise_signal(signal.SIGTERM)
            done.append("the rest")

    with pytest.raises(SystemExit):
        statement()

    assert done == ["the rest"]


def test_afterwards_it_ends_at_once() -> None:
    with ends_later():
        pass

    with pytest.raises(SystemExit):
        signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def beat(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[TickingScheduler]:
    monkeypatch.setattr("config.beat.require_database", lambda: None)
    beat = TickingScheduler(app=app)
    yield beat
    # Otherwise it would write when the tests end, and their database is gone.
    beat.sync()


def run_in_an_hour(beat: TickingScheduler) -> None:
    """The clock was an hour ahead, and is right again."""
    for entry in beat.schedule.values():
        entry.last_run_at = entry.model.last_run_at = timezone.now() + timedelta(hours=1)


def test_tasks_are_due_in_time_after_the_clock_was_put_back(beat: TickingScheduler) -> None:
    run_in_an_hour(beat)

    beat.tick()
    beat.sync()

    soonest = beat.schedule["remove credentials of users who left"]
    assert soonest.is_due().next <= 10
    assert not PeriodicTask.objects.filter(last_run_at__gt=timezone.now()).exists()


def test_it_looks_at_every_task_anew_after_the_clock_was_put_back(
    beat: TickingScheduler,
) -> None:
    run_in_an_hour(beat)
    DatabaseScheduler.tick(beat)

    beat.tick()

    heap: list[Any] = vars(beat)["_heap"]
    assert min(event.time for event in heap) <= time.time() + 10
