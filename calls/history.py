"""What an agent did before a call: for those who decide on it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from calls.record.states import State

MOST = 5

RECENT = 200

# Two walks along the agent's own index for each of the calls.
_BEFORE = """
SELECT c.id, c.tool_id IN (
    SELECT r.tool_id FROM (
        SELECT tool_id FROM calls_call WHERE agent_id = c.agent_id AND id < c.id
        ORDER BY id DESC LIMIT %s
    ) r
), p.id, p.tool_name, p.state, p.asked_at
FROM calls_call c CROSS JOIN LATERAL (
    SELECT id, tool_name, state, asked_at FROM calls_call
    WHERE agent_id = c.agent_id AND id < c.id
    ORDER BY id DESC LIMIT %s
) p
WHERE c.id = ANY(%s)
ORDER BY c.id, p.id DESC
"""


class PastCall(NamedTuple):
    """One call that was before another."""

    id: UUID
    tool_name: str
    state: str
    asked_at: datetime

    @property
    def label(self) -> str:
        return str(State(self.state).label)


class RecentCalls(NamedTuple):
    """The last few calls of an agent, and whether a tool is among its last RECENT ones."""

    calls: list[PastCall]
    is_usual: bool


def before(call_ids: Collection[UUID]) -> dict[UUID, RecentCalls]:
    """Of each call whose agent had asked for something before."""
    found: dict[UUID, RecentCalls] = {}
    with connection.cursor() as cursor:
        cursor.execute(_BEFORE, [RECENT, MOST, list(call_ids)])
        for call_id, is_usual, *earlier in cursor.fetchall():
            known = found.setdefault(call_id, RecentCalls([], is_usual=bool(is_usual)))
            known.calls.append(PastCall(*earlier))
    return found
