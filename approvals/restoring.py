"""Held calls of a restored backup: nobody decides on them any more (calls/restoring.py)."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from approvals.models import Approval
from audit.models import ClockTime
from audit.services import Actor
from calls.record.states import State
from calls.record.transitions import move_now
from calls.restoring import Fate, ended


def close_pending(known: Mapping[UUID, Fate], *, said: str, by: Actor) -> int:
    """In the caller's transaction; how many they were."""
    pending = list(Approval.objects.waiting().order_by("pk").values_list("pk", flat=True))
    Approval.objects.waiting().update(state=Approval.State.SUPERSEDED, decided_at=ClockTime())
    for call_id in pending:
        move_now(ended(call_id, State.HELD, known.get(call_id), said=said, by=by))
    return len(pending)
