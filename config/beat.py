"""Celery's clock, and when it turned last."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from celery.beat import SchedulingError
from django.utils import timezone
from django_celery_beat.schedulers import DatabaseScheduler

from config.older_database import require_database

# It turns every 5 s, waits for the broker in between, and has a task to send at least every 10 s.
STANDS_AFTER_S = 30.0
ENDS = (signal.SIGTERM, signal.SIGINT)
_turned_at = time.monotonic()
# Whether the broker did not take the last task: the clock goes on without it.
_is_unsent = False


class TickingScheduler(DatabaseScheduler):  # type: ignore[misc]
    def setup_schedule(self) -> None:
        # Not at `beat_init`: this writes, and is done before that is signalled.
        require_database()
        with ends_later():
            super().setup_schedule()

    def tick(self, *given: Any, **named: Any) -> Any:
        global _turned_at  # noqa: PLW0603 one per process is the point
        with ends_later():
            self._forget_later_runs()
            delay = super().tick(*given, **named)
        if not _is_unsent:
            _turned_at = time.monotonic()
        return delay

    def _forget_later_runs(self) -> None:
        """Forgets runs of before the clock was put back: until that time, no task would be due."""
        now = timezone.now()
        later = [entry for entry in self.schedule.values() if entry.last_run_at > now]
        for entry in later:
            entry.last_run_at = entry.model.last_run_at = now
            entry.model.no_changes = True
            self._dirty.add(entry.name)
        if later:
            # Its times are of that clock, too.
            self._heap = None

    def apply_async(self, *given: Any, **named: Any) -> Any:
        global _is_unsent  # noqa: PLW0603 one per process is the point
        try:
            sent = super().apply_async(*given, **named)
        except SchedulingError:
            _is_unsent = True
            raise
        _is_unsent = False
        return sent


@contextmanager
def ends_later() -> Iterator[None]:
    """A signal to end takes effect afterwards: Celery's handlers raise wherever they come, which
    within a statement leaves a connection that cannot be used."""
    asked: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    before = {one: signal.signal(one, remember) for one in ENDS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        if asked:
            signal.raise_signal(asked[0])


def find_fault() -> str:
    return "" if time.monotonic() - _turned_at < STANDS_AFTER_S else "the clock stands"
