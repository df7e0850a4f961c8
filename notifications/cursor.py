"""Reads committed entries once, in whatever order they commit, and makes deliveries of them.
Acts of people are joined to the messages that led to them, and a changed time zone moves the
messages that wait for quiet hours.

Ids are given out before entries commit: one with a lower id may come after one with a higher. So
entries beyond `reached` are remembered one by one, and `reached` follows once every transaction
that could still fill an id below has ended. The sealer does it in the same way (audit/sealing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection, transaction

from audit.models import Entry
from notifications.acts import ACTS, note_acts
from notifications.deliveries import ZONE_SET, create_for, follow_time_zones
from notifications.events import BY_ACTION
from notifications.models import EntryCursor

# Entries that one round turns into deliveries.
BATCH = 200
# A writer may take so long between drawing an id and beginning to write.
DAWDLING = timedelta(seconds=10)

BEGIN = """
    INSERT INTO notifications_entrycursor (id, reached, seen, ahead)
    SELECT 1, coalesce(max(id), 0), '{}', coalesce(max(id), 0) FROM audit_entryrow
    ON CONFLICT DO NOTHING
"""
HORIZON = """
    SELECT pg_snapshot_xmin(s)::text::numeric::bigint, pg_snapshot_xmax(s)::text::numeric::bigint,
        clock_timestamp(), (SELECT coalesce(max(id), 0) FROM audit_entryrow)
    FROM pg_current_snapshot() s
"""
# By the index of actions, which leaves out the two that nearly all entries have.
NEW = """
    SELECT e.id FROM audit_name n CROSS JOIN LATERAL (
        SELECT id FROM audit_entryrow
        WHERE action = n.id AND action > 2 AND id > %(reached)s AND id <> ALL(%(seen)s)
        ORDER BY id LIMIT %(most)s
    ) e
    WHERE n.kind = 'action' AND left(n.text, 500) = ANY(%(actions)s)
    ORDER BY e.id LIMIT %(most)s
"""


class EntryHorizon(NamedTuple):
    ended_below: int
    begun_below: int
    now: datetime
    last_id: int


@transaction.atomic
def read_entries() -> int:
    """Makes deliveries of new entries; how many entries it read. Another process's turn: none."""
    cursor = EntryCursor.objects.select_for_update(skip_locked=True).first()
    if cursor is None:
        return _begin()
    # Before the entries are read: those of transactions that ended by then are seen.
    snapshot = _snapshot()
    ids = _new(cursor)
    entries = _entries(ids)
    create_for(entries)
    note_acts(entries)
    follow_time_zones(entries)
    _move(cursor, snapshot, ids)
    return len(ids)


def begin_after_restore() -> None:
    """Entries of another database's life are no news, and its transactions had other numbers."""
    EntryCursor.objects.all().delete()
    _begin()


def _begin() -> int:
    with connection.cursor() as cursor:
        cursor.execute(BEGIN)
    return 0


def _snapshot() -> EntryHorizon:
    with connection.cursor() as cursor:
        cursor.execute(HORIZON)
        return EntryHorizon(*cursor.fetchone())


def _new(known: EntryCursor) -> list[int]:
    given: dict[str, Any] = {
        "reached": known.reached,
        "seen": known.seen,
        "actions": [*BY_ACTION, *ACTS, ZONE_SET],
        "most": BATCH,
    }
    with connection.cursor() as cursor:
        cursor.execute(NEW, given)
        return [pk for (pk,) in cursor.fetchall()]


def _entries(ids: list[int]) -> Sequence[Entry]:
    return list(Entry.objects.filter(pk__in=ids).order_by("pk")) if ids else ()


def _move(cursor: EntryCursor, snapshot: EntryHorizon, ids: list[int]) -> None:
    cursor.seen += ids
    if cursor.ahead_horizon is None:
        # Whoever drew an id up to there has begun by then.
        is_due = snapshot.now - cursor.ahead_at > DAWDLING and not _is_at_end(cursor, snapshot)
        if is_due:
            cursor.ahead_horizon = snapshot.begun_below
        if is_due or ids:
            cursor.save()
    elif cursor.ahead_horizon <= snapshot.ended_below and len(ids) < BATCH:
        cursor.reached = cursor.ahead
        cursor.seen = [pk for pk in cursor.seen if pk > cursor.reached]
        cursor.ahead, cursor.ahead_at = snapshot.last_id, snapshot.now
        cursor.ahead_horizon = None
        cursor.save()
    elif ids:
        cursor.save()


def _is_at_end(cursor: EntryCursor, snapshot: EntryHorizon) -> bool:
    """Nothing was written since all was read: no row is changed for that."""
    return cursor.reached == cursor.ahead == snapshot.last_id
