"""What people decided on calls like one that waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from approvals.models import Approval

MOST = 3

# The same tool asked for by the same agent stands first, then the same tool by others.
_SIMILAR = """
SELECT c.id, p.*
FROM calls_call c CROSS JOIN LATERAL (
    SELECT q.id, g.name, a.state, u.username, a.decided_at,
           q.agent_id = c.agent_id AS same_agent, q.arguments_digest = c.arguments_digest AS same
    FROM (
        SELECT id, agent_id, arguments_digest FROM calls_call
        WHERE tool_id = c.tool_id AND effect = 'ask' AND id < c.id
        ORDER BY id DESC LIMIT 50
    ) q
    JOIN approvals_approval a ON a.call_id = q.id AND a.state IN ('approved', 'denied')
    JOIN accounts_agent g ON g.id = q.agent_id
    LEFT JOIN accounts_user u ON u.id = a.decided_by_id
    ORDER BY same DESC, same_agent DESC, q.id DESC LIMIT %s
) p
WHERE c.id = ANY(%s)
"""


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


def similar(call_ids: Collection[UUID]) -> dict[UUID, list[PastDecision]]:
    found: dict[UUID, list[PastDecision]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_SIMILAR, [MOST, list(call_ids)])
        for call_id, *decided in cursor.fetchall():
            found[call_id].append(PastDecision(*decided))
    return found
