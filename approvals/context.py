from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from django.db import connection
from django.http import HttpRequest

from approvals.models import Approval
from calls import pauses
from calls.models import Freeze, FreezeQuerySet
from calls.record.states import State

# A badge says "99+": counting further would only cost.
COUNTED = 100
_COUNTS = f"""
SELECT
    (SELECT count(*) FROM (
        SELECT FROM approvals_approval WHERE state = '{Approval.State.WAITING}' LIMIT {COUNTED}
    ) a),
    (SELECT count(*) FROM (
        SELECT FROM calls_call WHERE state = '{State.UNKNOWN}' LIMIT {COUNTED}
    ) c),
    EXISTS (SELECT FROM calls_freeze WHERE ended_at IS NULL),
    (SELECT count(*) FROM approvals_breakglass WHERE reviewed_at IS NULL),
    EXISTS (SELECT FROM approvals_queueview),
    paused.*
FROM ({pauses.STATE}) paused
"""


class Counts(NamedTuple):
    waiting: int
    unknown: int
    # Emergency stops are in force.
    are_stops: bool
    # Uses of break-glass that nobody has reviewed.
    glass_broken: int
    # Somebody saved a view of the queue.
    are_views: bool
    # Why nothing is sent now; empty if calls are.
    paused: str


def undone(request: HttpRequest) -> dict[str, Any]:
    """Template context of every page: counts of pending and unresolved calls, emergency stops
    in force, and why sending is paused. Lazy, and read once."""
    counts = cache(_counts)
    return {
        "queue_count": lambda: counts().waiting if _may(request, "approvals.view_approval") else 0,
        "unknown": lambda: counts().unknown if _may(request, "calls.cancel_call") else 0,
        "frozen": lambda: _stops(request) if counts().are_stops else (),
        "glass_broken": lambda: (
            counts().glass_broken if _may(request, "approvals.view_approval") else 0
        ),
        "are_views": lambda: counts().are_views,
        "paused": lambda: counts().paused if _is_signed_in(request) else "",
    }


def count_waiting() -> int:
    return _counts().waiting


def _counts() -> Counts:
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS)
        waiting, unknown, are_stops, glass_broken, are_views, *pause = cursor.fetchone()
        paused = pauses.say_why(*pause)
        return Counts(waiting, unknown, are_stops, glass_broken, are_views, paused)


def _stops(request: HttpRequest) -> FreezeQuerySet:
    every = Freeze.objects.holding().for_page()
    return every if _may(request, "calls.view_call") else every.none()


def _is_signed_in(request: HttpRequest) -> bool:
    person = getattr(request, "user", None)
    return bool(person and person.is_authenticated)


def _may(request: HttpRequest, permission: str) -> bool:
    person = getattr(request, "user", None)
    return bool(person and person.has_perm(permission))
