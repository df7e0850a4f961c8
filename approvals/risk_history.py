"""Agents and tools with pending calls, and what became of their earlier calls."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

# So many of the agent's calls, and of the tool's decisions, are looked at.
CALLS_MAX = 200
DECISIONS_MAX = 50

# Once for each pair of agent and tool, however many calls of it are pending; what became of earlier
# ones only for pairs of the calls that are shown. A call that waits is no use of its tool.
_PAIRS = """
SELECT p.agent_id, p.tool_id, g.name, p.tool_name, p.pending, p.oldest,
    CASE WHEN p.is_shown THEN NOT EXISTS (
        SELECT FROM (
            SELECT r.tool_id FROM calls_call r
            WHERE r.agent_id = p.agent_id AND r.sent_at IS NOT NULL
            ORDER BY r.id DESC LIMIT (SELECT %(calls)s)
        ) r WHERE r.tool_id = p.tool_id
    ) ELSE false END,
    CASE WHEN p.is_shown THEN (
        SELECT count(*) FROM (
            SELECT q.id, q.agent_id FROM calls_call q
            WHERE q.tool_id = p.tool_id AND q.effect = 'ask' AND q.state <> 'held'
            ORDER BY q.id DESC LIMIT (SELECT %(decisions)s)
        ) q
        JOIN approvals_approval a ON a.call_id = q.id AND a.state = 'denied'
        WHERE q.agent_id = p.agent_id
    ) ELSE 0 END
FROM (
    SELECT c.agent_id, c.tool_id, c.tool_name,
        count(*) FILTER (WHERE a.state = 'waiting') AS pending,
        min(a.asked_at) FILTER (WHERE a.state = 'waiting') AS oldest,
        bool_or(c.id = ANY(%(ids)s::uuid[])) AS is_shown
    FROM approvals_approval a JOIN calls_call c ON c.id = a.call_id
    WHERE a.call_id = ANY(
        ARRAY(SELECT call_id FROM approvals_approval WHERE state = 'waiting') || %(ids)s::uuid[]
    )
    GROUP BY 1, 2, 3
) p
JOIN accounts_agent g ON g.id = p.agent_id
"""


class RiskHistory(NamedTuple):
    """`denied`: how many of the tool's last decisions were denials of this agent."""

    is_first_use: bool = False
    denied: int = 0


NO_HISTORY = RiskHistory()
# By agent and tool.
Histories = dict[tuple[int, int | None], RiskHistory]


class PendingPair(NamedTuple):
    """An agent and a tool, and how many calls of the one for the other are pending."""

    agent_id: int
    tool_id: int | None
    agent: str
    tool: str
    pending: int
    # When the first of these was asked for.
    oldest: datetime | None
    history: RiskHistory


def pending_pairs(shown: Collection[UUID]) -> list[PendingPair]:
    """`shown`: the calls whose history is read; they need not be pending."""
    given: dict[str, Any] = {
        "calls": CALLS_MAX,
        "decisions": DECISIONS_MAX,
        "ids": list(shown),
    }
    with connection.cursor() as cursor:
        cursor.execute(_PAIRS, given)
        return [_pair(*row) for row in cursor.fetchall()]


def _pair(
    agent_id: int,
    tool_id: int | None,
    agent: str,
    tool: str,
    pending: int,
    oldest: datetime | None,
    is_first_use: bool,
    denied: int,
) -> PendingPair:
    history = RiskHistory(is_first_use, denied)
    return PendingPair(agent_id, tool_id, agent, tool, pending, oldest, history)


def histories(pairs: list[PendingPair]) -> Histories:
    return {(pair.agent_id, pair.tool_id): pair.history for pair in pairs}
