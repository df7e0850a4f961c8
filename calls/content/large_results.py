"""Results too large for one row: kept in parts, for a while, and read as if they were one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from audit.services import SYSTEM, record
from calls.models import Result
from core.journal import Statement

LARGE = 256 * 1024
PART = 256 * 1024

# Before the move of the same transaction, which may find the call ended elsewhere: then nothing
# was kept either, since it is locked until then.
KEEP = Statement(
    "keep",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(id uuid, fence int, result text, part int)
), running AS MATERIALIZED (
    SELECT c.id, decode(a.result, 'base64') AS body, a.part
    FROM asked a JOIN calls_call c ON c.id = a.id AND c.fence = a.fence
    WHERE c.id BETWEEN %s AND %s AND c.state = 'running' FOR UPDATE OF c
)
INSERT INTO calls_resultpart (call_id, number, body)
SELECT r.id, n, substring(r.body FROM n * r.part + 1 FOR r.part)
FROM running r, generate_series(0, (octet_length(r.body) - 1) / r.part) n
ON CONFLICT DO NOTHING
RETURNING call_id
""",
    order=1,
    bounded=True,
)

# Parts and rows whose time is over, but for those under a legal hold; what the call's row says of
# them stays.
EXPIRE = """
DELETE FROM calls_resultpart p USING (
    SELECT r.call_id FROM calls_result r
    WHERE r.kept_until < clock_timestamp()
      AND EXISTS (SELECT FROM calls_resultpart x WHERE x.call_id = r.call_id)
      AND calls_hold_of(r.call_id) IS NULL
    ORDER BY r.kept_until LIMIT 1000
) old WHERE p.call_id = old.call_id RETURNING p.call_id
"""


def is_large(line: Mapping[str, Any]) -> bool:
    return (line.get("result_size") or 0) > LARGE


def lines_of(move: Statement, line: dict[str, Any]) -> list[tuple[Statement, dict[str, Any]]]:
    """How the end of a call is written: its result beside it, in parts where it is large."""
    if not is_large(line):
        return [(move, line)]
    kept = {name: line[name] for name in ("id", "fence", "result")} | {"part": PART}
    keep_s = settings.LARGE_RESULTS_DAYS * 86400
    return [(KEEP, kept), (move, {**line, "result": "", "kept_s": keep_s})]


def body_of(row: Result) -> bytes | None:
    """None when it is no longer kept."""
    if row.kept_until is None:
        return bytes(row.body)
    parts = [bytes(part.body) for part in row.parts.order_by("number")]
    return b"".join(parts) if parts else None


def expired_at(row: Result | None) -> datetime | None:
    """When the result was removed, if it was."""
    if row is None or row.kept_until is None or row.parts.exists():
        return None
    return row.kept_until


def may_expire() -> bool:
    """Has this process's database role that right? Where one is kept for maintenance, only that."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege('calls_resultpart', 'DELETE')")
        return bool(cursor.fetchone() == (True,))


@transaction.atomic
def expire() -> set[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(EXPIRE)
        gone = {call_id for (call_id,) in cursor.fetchall()}
    if gone:
        # Not one for each: their calls say it too.
        record("results.expired", actor=SYSTEM, count=len(gone), days=settings.LARGE_RESULTS_DAYS)
    return gone
