"""Setting and removing retention periods, each with its entry."""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction

from accounts.models import User
from audit.services import record
from calls.content.retention import (
    DUE_CALLS,
    Key,
    RetentionRules,
    all_tools,
    cutoffs,
    due_values,
    lengths,
)
from calls.models import RetainedContent, RetentionPeriod

CHANGED = "retention.changed"
# More are not counted.
MOST_COUNTED = 100_000

COUNT = f"""
    SELECT count(*) FROM (
        SELECT FROM {DUE_CALLS} LIMIT %(most)s) due
"""


@transaction.atomic
def set_period(content: RetainedContent, key: Key, days: int | None, *, by: User) -> None:
    """`days` is None: kept."""
    scope, target = key
    known = RetentionPeriod.objects.select_for_update()
    row = known.filter(content=content, scope=scope, target=target).first()
    before = _value_of(row)
    row = row or RetentionPeriod(content=content, scope=scope, target=target)
    row.days = days
    row.save()
    _record(row, before, _value_of(row), by)


@transaction.atomic
def remove_period(row: RetentionPeriod, *, by: User) -> None:
    before = _value_of(row)
    row.delete()
    _record(row, before, "", by)


def _value_of(row: RetentionPeriod | None) -> int | str:
    if row is None:
        return ""
    return "kept" if row.days is None else row.days


def _record(row: RetentionPeriod, before: int | str, after: int | str, by: User) -> None:
    facts: dict[str, Any] = {"content": row.content, "scope": row.scope, "target": row.target}
    record(CHANGED, actor=by.actor, **facts, before=before, after=after)


def count_due(now: RetentionRules, then: RetentionRules) -> int:
    """How many more calls `then` would erase, and `now` would not; at most MOST_COUNTED."""
    tools = all_tools()
    before, after = lengths(now, tools), lengths(then, tools)
    shorter = {pk: days for pk, days in after.items() if pk not in before or days < before[pk]}
    values = due_values(now, cutoffs(shorter)) | {"most": MOST_COUNTED, "each": MOST_COUNTED}
    with connection.cursor() as cursor:
        cursor.execute(COUNT, values)
        return int(cursor.fetchone()[0])
