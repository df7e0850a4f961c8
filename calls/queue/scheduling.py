"""Whose turn it is: the agent with the least under way goes first, and nobody takes it all.

Counted from live leases, so that what a dead process held is free as soon as its leases end.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from calls.freezes import FROZEN
from calls.models import Call
from calls.pauses import IS_PAUSED
from core import planned
from core.listen import GENERATION

NEXT = f"""
    WITH live AS (
        SELECT agent_id, server_id FROM calls_call
        WHERE state = 'running' AND mode = 'background' AND lease_until > clock_timestamp()
    ), busy AS (
        SELECT server_id FROM live GROUP BY 1 HAVING count(*) >= %(server)s
    ), waiting AS (
        SELECT id, agent_id, row_number() OVER (PARTITION BY agent_id ORDER BY id) AS place
        FROM calls_call c
        WHERE NOT {IS_PAUSED} AND state = 'queued' AND start_by > clock_timestamp()
          AND {FROZEN} IS NOT TRUE
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

ROOM = f"""
    SELECT count(*) FILTER (WHERE agent_id = %s) < %s
       AND count(*) FILTER (WHERE server_id = %s) < %s,
       pg_current_xact_id()::text::bigint, (SELECT number FROM ({GENERATION}) g (number))
    FROM calls_call
    WHERE state = 'running' AND mode = 'background' AND lease_until > clock_timestamp()
"""


def whose_turn(*, most: int, older_s: float = 0.0) -> list[UUID]:
    """Calls that may start now, the next first: round about the agents, the older before."""
    limits = {"agent": settings.AGENT_LIMIT, "server": settings.SERVER_LIMIT}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT {planned.KEEP_PLANS}")
        found = planned.execute(NEXT, {**limits, "most": most, "older_s": older_s})
        return [row[0] for row in found.fetchall()]


class Capacity(NamedTuple):
    is_free: bool
    # The number of this transaction.
    transaction: int
    # The configuration's number (core.listen.GENERATION) by now.
    generation: int


def read_capacity(call: Call) -> Capacity:
    """Whether its agent and server have room, in the transaction that holds their locks
    (queued_call.lock)."""
    agent, server = call.agent_id, call.server_id or 0
    given = [agent, settings.AGENT_LIMIT, server, settings.SERVER_LIMIT]
    row = planned.execute(ROOM, given).fetchone()
    assert row is not None
    return Capacity(*row)
