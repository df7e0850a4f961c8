"""Recent calls of an agent and a tool, for conditions of rules.

Read only for calls that a rule covers whose condition asks for it, and never far back: what a
condition may cost is bounded, and this is part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

# Of the agent's newest entries; an allowed call has two, one that people decided about five.
LOOKED_AT = 5_000
WITHIN_MS = 200
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
ROOT = "history"

# SQL of entries `e`: how many calls each counts that a limit blocked and that have no entries of
# their own (gateway/process/limit_windows.py), and when the first of them came.
_COUNTS = """e.action = (
    SELECT a.id FROM audit_name a WHERE a.kind = 'action' AND a.text = 'limit.refused' LIMIT 1)"""
BLOCKED = f"""
    CASE WHEN {_COUNTS} THEN COALESCE((e.details ->> 'calls')::int, 0) ELSE 0 END AS blocked,
    CASE WHEN {_COUNTS} THEN e.at - make_interval(
        secs => COALESCE((e.details ->> 'seconds')::float, 3600)) END AS blocked_at
"""

SQL = f"""
WITH recent AS MATERIALIZED (
    SELECT e.id, e.at, e.seq, e.to_state, e.tool, e.call_id, {BLOCKED} FROM audit_name n
    CROSS JOIN LATERAL (
        -- As the index has them (audit/models/entries.py::BLOCK).
        SELECT * FROM audit_entryrow r WHERE r.agent = n.id
        ORDER BY r.id >> 10 DESC, r.id DESC LIMIT 5000
    ) e
    WHERE n.kind = 'agent' AND n.subject = %s ORDER BY e.id DESC LIMIT 5000
), mine AS (
    SELECT * FROM recent
    WHERE tool IN (SELECT n.id FROM audit_name n WHERE n.kind = 'tool' AND n.text = %s)
      AND (call_id IS DISTINCT FROM %s::uuid OR blocked > 0)
      AND at <= COALESCE(%s::timestamptz, clock_timestamp())
), moment AS (
    SELECT COALESCE(%s::timestamptz, clock_timestamp()) AS now
)
SELECT count(*) FILTER (WHERE seq = 1 AND at > now - interval '1 hour')
        + COALESCE(sum(blocked) FILTER (WHERE at > now - interval '1 hour'), 0),
    count(*) FILTER (
        WHERE seq IS NOT NULL AND to_state IN ('refused', 'invalid', 'denied')
          AND at > now - interval '24 hours')
        + COALESCE(sum(blocked) FILTER (WHERE at > now - interval '24 hours'), 0),
    max(at) FILTER (WHERE seq IS NOT NULL AND to_state = 'approved')
FROM moment LEFT JOIN mine ON true
"""


@dataclass(frozen=True, slots=True)
class History:
    calls_1h: int = 0
    refused_24h: int = 0
    last_approved: datetime = NEVER

    def facts(self) -> dict[str, Any]:
        return {
            "history.calls_1h": self.calls_1h,
            "history.refused_24h": self.refused_24h,
            "history.last_approved": self.last_approved,
        }


def arguments(
    agent_id: int, tool: str, *, but: UUID | None = None, at: datetime | None = None
) -> list[Any]:
    """Parameters of the SQL. `tool`: its name for agents; `but` and `at`: the state of things when
    that call was requested."""
    return [agent_id, tool, but, at, at]


def of_rows(rows: Sequence[Sequence[Any]]) -> History:
    ((calls, refused, approved),) = rows
    return History(calls, refused, approved or NEVER)
