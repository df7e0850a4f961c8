"""The past of a pending call: its agent's last calls, and decisions on calls like it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import connection

from accounts.models import shown_name
from approvals.models import Approval
from calls.record.states import State

CALLS_MAX = 5
DECISIONS_MAX = 3

# A walk along the agent's own index, and one along the tool's. Of decisions, those of the same
# agent stand first, then those of others.
_PAST = """
SELECT c.id, (
    SELECT jsonb_agg(jsonb_build_array(p.id, p.tool_name, p.state, p.asked_at) ORDER BY p.id DESC)
    FROM (
        SELECT id, tool_name, state, asked_at FROM calls_call
        WHERE agent_id = c.agent_id AND id < c.id
        ORDER BY id DESC LIMIT %(calls)s
    ) p
)::text, (
    SELECT jsonb_agg(
        jsonb_build_array(
            p.id, p.name, p.state, p.username, p.first_name, p.decided_at, p.same_agent, p.same)
        ORDER BY p.same DESC, p.same_agent DESC, p.id DESC)
    FROM (
        SELECT q.id, g.name, a.state, u.username, u.first_name, a.decided_at,
               q.agent_id = c.agent_id AS same_agent,
               q.arguments_digest = c.arguments_digest AS same
        FROM (
            SELECT id, agent_id, arguments_digest FROM calls_call
            WHERE tool_id = c.tool_id AND effect = 'ask' AND id < c.id
            ORDER BY id DESC LIMIT 50
        ) q
        JOIN approvals_approval a ON a.call_id = q.id AND a.state IN ('approved', 'denied')
        JOIN accounts_agent g ON g.id = q.agent_id
        LEFT JOIN accounts_user u ON u.id = a.decided_by_id
        ORDER BY same DESC, same_agent DESC, q.id DESC LIMIT %(decisions)s
    ) p
)::text
FROM calls_call c WHERE c.id = ANY(%(ids)s)
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


class PastDecision(NamedTuple):
    """One decision on a call of the same tool."""

    call_id: UUID
    agent: str
    state: str
    person: str | None
    at: datetime
    same_agent: bool
    # Of the very same arguments.
    same_arguments: bool

    @property
    def label(self) -> str:
        return str(Approval.State(self.state).label)


class Past(NamedTuple):
    calls: list[PastCall]
    decisions: list[PastDecision]


NOTHING = Past([], [])


def past(call_ids: Collection[UUID]) -> dict[UUID, Past]:
    """Earlier calls like each of these, by call id."""
    given: dict[str, Any] = {
        "calls": CALLS_MAX,
        "decisions": DECISIONS_MAX,
        "ids": list(call_ids),
    }
    with connection.cursor() as cursor:
        cursor.execute(_PAST, given)
        return {
            call_id: Past(
                [_call(*one) for one in orjson.loads(calls or "[]")],
                [_decision(*one) for one in orjson.loads(decisions or "[]")],
            )
            for call_id, calls, decisions in cursor.fetchall()
        }


def _call(call_id: str, tool_name: str, state: str, asked_at: str) -> PastCall:
    return PastCall(UUID(call_id), tool_name, state, datetime.fromisoformat(asked_at))


def _decision(
    call_id: str, agent: str, state: str, name: str | None, display: str, at: str, *same: bool
) -> PastDecision:
    person = shown_name(name, display) if name else None
    return PastDecision(UUID(call_id), agent, state, person, datetime.fromisoformat(at), *same)
