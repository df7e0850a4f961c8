"""The weekly report on approvals: one entry a week, from Monday 06:00 UTC on. Where it is earlier
then, its mail waits for the reader's own Monday (notifications/workload_mails.py)."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from django.db import connection, transaction

from audit.names import entries_of
from audit.services import SYSTEM, record

ACTION = "workload.weekly"
AT = time(6, tzinfo=UTC)
LOCK = "SELECT pg_advisory_xact_lock(hashtext('countersign weekly workload'))"


@transaction.atomic
def tell(now: datetime) -> bool:
    """Whether it was told now: not before its time, and not twice. A week that was missed on Monday
    is told at the next run in that week."""
    today = now.astimezone(UTC).date()
    due = datetime.combine(today - timedelta(days=today.weekday()), AT)
    if now < due:
        return False
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
    if entries_of([ACTION]).filter(at__gte=due).exists():
        return False
    record(ACTION, actor=SYSTEM)
    return True
