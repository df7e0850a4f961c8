"""Marks calls whose lease renewal is overdue.

It may be back before the lease ends. Until then nobody knows, and the call's page says so.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from audit.models import ClockTime
from calls.models import Call
from calls.record.states import State
from core.live import notify_on_commit

# A renewal that comes a little late is no silence.
LATE_S = 2.0
LEASES_MAX = 100


def since(call: Call) -> datetime | None:
    """When it was heard of last, of a call that has fallen silent."""
    if call.state != State.RUNNING or call.lease_until is None:
        return None
    heard = call.lease_until - timedelta(seconds=settings.LEASE_S)
    return heard if timezone.now() - heard > _patience() else None


class StaleLeases:
    """Tells pages when a call falls silent, and when it is heard of again."""

    def __init__(self) -> None:
        self._silent: set[UUID] = set()

    def look(self) -> None:
        before, self._silent = self._silent, _silent()
        notify_on_commit(*(f"call.{call_id}" for call_id in before ^ self._silent))


def _silent() -> set[UUID]:
    fresh = timedelta(seconds=settings.LEASE_S) - _patience()
    running = Call.objects.filter(state=State.RUNNING, lease_until__lt=ClockTime() + fresh)
    return set(running.order_by("pk").values_list("pk", flat=True)[:LEASES_MAX])


def _patience() -> timedelta:
    return timedelta(seconds=settings.LEASE_S / 3 + LATE_S)
