"""Brings a counter up to date, as the next call that it counts does (calls/sql/limits.sql): windows
and calls that ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction

from policies.limits.compiled import CompiledLimit
from policies.models import LimitCounter, LimitUse

_SETTLE = "SELECT calls_settle_limit(%s, %s, %s, %s, %s)"


def settle(counter: LimitCounter, limit: CompiledLimit) -> None:
    """The caller holds the counter's lock."""
    _settle(counter, limit.kind, limit.period, limit.amount, limit.hold_s)


def _settle(counter: LimitCounter, *limit: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, [counter.pk, *limit])
    counter.refresh_from_db()


def find_settled(limit: CompiledLimit, key: str) -> LimitCounter | None:
    found = LimitCounter.objects.select_related("limit").filter(limit_id=limit.id, key=key).first()
    return settled_counters([found])[0] if found else None


def settled_counters(counters: Sequence[LimitCounter]) -> list[LimitCounter]:
    """The counters as the next calls would find them. Keeps nothing: pages only look. Each is
    locked for its own moment alone, so that no call waits for a whole page."""
    uses = LimitUse.objects.filter(counter__in=counters)
    reserved = set(uses.values_list("counter_id", flat=True))
    return [_settled(one) if one.pk in reserved else one for one in counters]


def _settled(counter: LimitCounter) -> LimitCounter:
    limit = counter.limit
    with transaction.atomic():
        locked = LimitCounter.objects.select_for_update().filter(pk=counter.pk).first()
        if locked is not None:
            _settle(locked, limit.kind, limit.period, limit.amount, 60 * (limit.minutes or 0))
            locked.limit = limit
        transaction.set_rollback(True)
    return locked or counter
