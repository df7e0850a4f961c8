from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from django.db import connection
from django.http import HttpRequest

from approvals.models import Approval
from calls.states import State

# A badge says "99+": counting further would only cost.
COUNTED = 100
_COUNTS = f"""
SELECT
    (SELECT count(*) FROM (
        SELECT FROM approvals_approval WHERE state = '{Approval.State.WAITING}' LIMIT {COUNTED}
    ) a),
    (SELECT count(*) FROM (
        SELECT FROM calls_call WHERE state = '{State.UNKNOWN}' LIMIT {COUNTED}
    ) c)
"""


class Counts(NamedTuple):
    waiting: int
    unknown: int


def undone(request: HttpRequest) -> dict[str, Any]:
    """For the navigation: how many calls wait for a decision, and how many somebody has to look
    after. Read only by pages that draw it, and once."""
    counts = cache(_counts)
    return {
        "waiting": lambda: counts().waiting if _may(request, "approvals.view_approval") else 0,
        "unknown": lambda: counts().unknown if _may(request, "calls.cancel_call") else 0,
    }


def count_waiting() -> int:
    return _counts().waiting


def _counts() -> Counts:
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS)
        return Counts(*cursor.fetchone())


def _may(request: HttpRequest, permission: str) -> bool:
    person = getattr(request, "user", None)
    return bool(person and person.has_perm(permission))
