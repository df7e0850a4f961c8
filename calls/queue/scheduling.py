"""Whose turn it is: the agent with the least under way goes first, and nobody takes it all.

Counted from live leases, so that what a dead process held is free as soon as its leases end.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import connection

from calls.freezes import FROZEN
from calls.models import Call

NEXT = f"""
    WITH live AS (
        SELECT agent_id, server_id FROM calls_call
        WHERE state = 'running' AND mode = 'background' AND lease_until > clock_timestamp()
    ), busy AS (
        SELECT server_id FROM live GROUP BY 1 HAVING count(*) >= %(server)s
    ), waiting AS (
        SELECT id, agent_id, row_number() OVER (PARTITION BY agent_id ORDER BY id) AS place
        FROM calls_call c
        WHERE state = 'queued' AND start_by > clock_timestamp() AND {FROZEN} IS NOT TRUE
          AND (start_after IS NULL OR start_after <= clock_timestamp())
          AND asked_at <= clock_timestamp() - make_interval(secs => %(older_s)s)
          AND server_id NOT IN (SELECT server_id FROM busy)
    )
    SELECT w.id FROM waiting w
    LEFT JOIN (SELECT agent_id, count(*) AS n FROM live GROUP BY 1) a ON a.agent_id = w.agent_id
    WHERE COALESCE(a.n, 0) + w.place <= %(agent)s
    ORDER BY COALESCE(a.n, 0) + w.place, w.id
    LIMIT %(most)s
"""

# One claim at a time for an agent, and for a server: two that look at once would both find room.
LOCK = "SELECT pg_advisory_xact_lock(71001, %s), pg_advisory_xact_lock(71002, %s)"
ROOM = """
    SELECT count(*) FILTER (WHERE agent_id = %s) < %s
       AND count(*) FILTER (WHERE server_id = %s) < %s
    FROM calls_call
    WHERE state = 'running' AND mode = 'background' AND lease_until > clock_timestamp()
"""
INT_MAX = 2**31


def whose_turn(*, most: int, older_s: float = 0.0) -> list[UUID]:
    """Calls that may start now, the next first: round about the agents, the older before."""
    limits = {"agent": settings.AGENT_LIMIT, "server": settings.SERVER_LIMIT}
    with connection.cursor() as cursor:
        cursor.execute(NEXT, {**limits, "most": most, "older_s": older_s})
        return [row[0] for row in cursor.fetchall()]


def is_room_for(call: Call) -> bool:
    """Holds the agent's and the server's lock until the caller's transaction ends."""
    agent, server = call.agent_id, call.server_id or 0
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [agent % INT_MAX, server % INT_MAX])
        cursor.execute(ROOM, [agent, settings.AGENT_LIMIT, server, settings.SERVER_LIMIT])
        return bool(cursor.fetchone()[0])
