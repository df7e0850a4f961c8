"""Calls that their agents hold as tasks of 2025-11-25, which they may list."""

from __future__ import annotations

from django.db import connection

from core.journal import Statement

# Longer than any call waits: a rule gives it 30 days to be decided and 30 to be started.
KEPT_S = 61 * 24 * 3600
# In the commit of the call's first row: whoever may ask for the task finds it in the list.
LIST = Statement(
    "list as a task",
    """
INSERT INTO calls_listedtask (call_id, agent_id)
SELECT a.id, a.agent_id FROM json_to_recordset(%s::json) AS a(id uuid, agent_id bigint)
-- Not where the agent joined another call instead.
WHERE (SELECT true FROM calls_call c WHERE c.id = a.id) IS TRUE
ON CONFLICT DO NOTHING
RETURNING call_id
""",
    order=2,
)
FORGET = """
DELETE FROM calls_listedtask WHERE call_id IN (
    SELECT call_id FROM calls_listedtask
    WHERE listed_at < clock_timestamp() - make_interval(secs => %s)
    ORDER BY listed_at LIMIT 1000)
"""


def forget(*, older_s: float) -> int:
    """Tasks that may no longer be asked for; how many they were, at most a thousand."""
    with connection.cursor() as cursor:
        cursor.execute(FORGET, [older_s])
        return int(cursor.rowcount)
