"""How many calls of the last week a rule is about, at a bounded cost.

At most `MOST` calls are read by the index of tools or of agents, so the number is exact where a
rule is about fewer. Where there are more, as many of everybody's newest calls are read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from core.ids import first_id
from policies.scope import CallCount

DAYS = 7
MOST = 20_000

# The inner limit keeps the index in use, whatever the planner thinks of the table.
BY_KEY = """
    SELECT count(*) FILTER (WHERE {condition}), count(*)
    FROM (
        SELECT c.agent_id, c.tool_id FROM unnest(%(keys)s::bigint[]) AS k (id)
        CROSS JOIN LATERAL (
            SELECT agent_id, tool_id FROM calls_call
            WHERE {column} = k.id AND id >= %(low)s ORDER BY id DESC LIMIT %(most)s + 1
        ) AS c
        LIMIT %(most)s + 1
    ) AS c
"""
NEWEST = """
    SELECT count(*) FILTER (WHERE {condition}), count(*), min(c.asked_at)
    FROM (
        SELECT agent_id, tool_id, asked_at FROM calls_call
        WHERE id >= %(low)s ORDER BY id DESC LIMIT %(most)s
    ) AS c
"""
_CONDITION = "c.tool_id = ANY(%(tools)s) AND (%(everybody)s OR c.agent_id = ANY(%(agents)s))"


def count_calls(tools: Collection[int], agents: Sequence[int] | None) -> CallCount:
    """Calls of these tools by these agents; None: by everybody."""
    given: dict[str, Any] = {
        "tools": list(tools),
        "agents": list(agents or ()),
        "everybody": agents is None,
        "low": first_id(timezone.now() - timedelta(days=DAYS)),
        "most": MOST,
    }
    by_agent = agents is not None and len(agents) < len(tools)
    given["keys"] = given["agents"] if by_agent else given["tools"]
    column = "agent_id" if by_agent else "tool_id"
    calls, read = _read(BY_KEY, given, column=column)
    if read <= MOST:
        return CallCount(calls, DAYS)
    calls, read, since = _read(NEWEST, given)
    return CallCount(calls, DAYS, looked_at=read, since=since)


def _read(sql: str, given: dict[str, Any], **names: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql.format(condition=_CONDITION, **names), given)
        return cursor.fetchone()
