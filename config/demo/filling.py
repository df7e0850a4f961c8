"""Fills a demo's database: everything at once, and then each at its time of the last 30 days."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from accounts.models import User
from audit.demo import is_demo
from audit.models import Checkpoint
from calls import measuring
from calls.models import Call
from config.demo import cast
from config.demo.calls import CallFiller, Moments
from config.demo.month import DAYS, draw
from core.errors import CountersignError
from notifications import cursor as notifications
from policies import decide
from registry.models import Tool
from registry.publishing import published_catalogue

APPROVERS = ("jonas.berg", "amara.okafor", "sofia.rossi")
# Of what was set up before the first call: only the past is moved.
COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
    JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
      AND data_type = 'timestamp with time zone'
      AND table_name ~ '^(registry|accounts|policies)_'
"""
EARLIER = """
    UPDATE "{table}" SET "{column}" = "{column}" - %s::interval
    WHERE "{column}" <= clock_timestamp()
"""
EARLIER_ENTRIES = "UPDATE audit_entryrow SET at = at - %s::interval WHERE call_id IS NULL"
MOMENTS = (
    "CREATE TEMP TABLE demo_move (call uuid, seq smallint, at timestamptz) ON COMMIT DROP",
    "CREATE TEMP TABLE demo_vote (call uuid, person bigint, at timestamptz) ON COMMIT DROP",
    "CREATE TEMP TABLE demo_call (call uuid, asked timestamptz, decided timestamptz,"
    " sent timestamptz, finished timestamptz, until timestamptz) ON COMMIT DROP",
)
MOVED = (
    "UPDATE audit_entryrow e SET at = m.at FROM demo_move m"
    " WHERE e.call_id = m.call AND e.seq = m.seq",
    "UPDATE audit_entryrow e SET at = v.at FROM demo_vote v, audit_name n"
    " WHERE e.call_id = v.call AND e.seq IS NULL AND n.id = e.actor AND n.kind = 'person'"
    " AND n.subject = v.person",
    "UPDATE approvals_vote t SET at = v.at FROM demo_vote v"
    " WHERE t.approval_id = v.call AND t.person_id = v.person",
    "UPDATE calls_call c SET asked_at = d.asked, sent_at = d.sent, finished_at = d.finished,"
    " decide_by = d.until, start_by = NULL, lease_until = NULL FROM demo_call d"
    " WHERE c.id = d.call",
    "UPDATE approvals_approval a SET asked_at = d.asked, decided_at = d.decided,"
    " decide_by = d.until FROM demo_call d WHERE a.call_id = d.call",
    # Entries follow each other in time, as their ids do.
    "CREATE TEMP TABLE demo_order ON COMMIT DROP AS"
    " SELECT id, row_number() OVER (ORDER BY at, id) AS place FROM audit_entryrow",
    "UPDATE audit_entryrow e SET id = -o.place FROM demo_order o WHERE o.id = e.id",
    "UPDATE audit_entryrow SET id = -id",
)


class NotFilled(CountersignError):
    """This database is none that may be filled; says why."""


@transaction.atomic
def fill(days: int = DAYS) -> int:
    """Returns how many calls there are. Idempotent; raises NotFilled.

    Connected as a superuser: the times of rows that are never changed are set at the end.
    """
    if not is_demo():
        raise NotFilled(
            "This database holds a real record, which is never filled with invented calls. "
            "Start the demo on another data directory (--data)."
        )
    if not Call.objects.exists():
        if Checkpoint.objects.exists():
            raise NotFilled("Entries of this demo are sealed: their times are never moved.")
        _fill(timezone.now(), days)
    return Call.objects.count()


def _fill(now: datetime, days: int) -> None:
    agents = cast.set_up()
    moments = CallFiller(
        agents,
        _tools(),
        decide.load(),
        list(User.objects.filter(username__in=APPROVERS)),
    ).fill(draw(now, days))
    _set_times(moments, f"{days} days 2 hours")
    measuring.measure()
    notifications.begin_after_restore()


def _tools() -> dict[str, Any]:
    ids = Tool.objects.filter(published__isnull=False).values_list("pk", flat=True)
    found = [published_catalogue.one(pk) for pk in ids]
    return {tool.exposed_name: tool for tool in found if tool is not None}


def _set_times(moments: Moments, ago: str) -> None:
    """`ago`: how long before now everything was set up."""
    with connection.cursor() as cursor:
        # The record's rows are never changed by anybody, but for this: before any is sealed.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(COLUMNS)
        for table, column in cursor.fetchall():
            cursor.execute(EARLIER.format(table=table, column=column), [ago])
        cursor.execute(EARLIER_ENTRIES, [ago])
        for statement in MOMENTS:
            cursor.execute(statement)
        _copy(cursor, "demo_move", moments.moves)
        _copy(cursor, "demo_vote", moments.votes)
        _copy(cursor, "demo_call", moments.calls)
        for statement in MOVED:
            cursor.execute(statement)
        cursor.execute("SET LOCAL session_replication_role = origin")


def _copy(cursor: Any, table: str, rows: list[Any]) -> None:
    with cursor.copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
