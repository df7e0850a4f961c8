"""Brings a counter up to date, as the next call that it counts does (calls/sql/limits.sql): windows
and calls that ended."""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction

from policies.limits.compiled import CompiledLimit
from policies.models import LimitCounter

_SETTLE = "SELECT calls_settle_limit(%s, %s, %s, %s, %s)"


def settle(counter: LimitCounter, limit: CompiledLimit) -> None:
    """The caller holds the counter's lock."""
    given: list[Any] = [counter.pk, limit.kind, limit.period, limit.amount, limit.hold_s]
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, given)
    counter.refresh_from_db()


def find_settled(limit: CompiledLimit, key: str) -> LimitCounter | None:
    """The counter as the next call would find it. Keeps nothing: pages only look."""
    with transaction.atomic():
        counters = LimitCounter.objects.select_for_update()
        found = counters.filter(limit_id=limit.id, key=key).first()
        if found is not None and not limit.is_rate:
            settle(found, limit)
        transaction.set_rollback(True)
    return found
