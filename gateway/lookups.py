"""Finding an agent's own calls again: for task ids, for awaited calls, for cancelling."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import psycopg
from psycopg_pool import PoolTimeout

from calls.answers import Look, look
from calls.states import LIVE
from core.errors import RecordUnavailable
from gateway.runtime import Runtime
from policies.decide import Subject
from policies.history import SQL, WITHIN_MS, History, arguments, of_row

_OWN = """
    SELECT asked_at, COALESCE(finished_at, sent_at, asked_at),
        left(COALESCE(NULLIF(call_digest, ''), arguments_digest), 8),
        CASE WHEN state = 'held' THEN ARRAY(
            SELECT q.text FROM approvals_comment q
            WHERE q.approval_id = calls_call.id AND q.kind = 'question' AND NOT EXISTS (
                SELECT FROM approvals_comment a
                WHERE a.approval_id = q.approval_id AND a.kind = 'answer' AND a.id > q.id)
            ORDER BY q.id) END
    FROM calls_call
    WHERE id = %s AND agent_id = %s
"""
_REQUESTED = """
    SELECT id FROM calls_call
    WHERE request_key = %s AND agent_id = %s AND state = ANY(%s) ORDER BY id DESC LIMIT 1
"""
_BRIEFLY = f"SET LOCAL statement_timeout = {WITHIN_MS}"
UNREADABLE = "The record cannot be read right now. Try again soon."


@dataclass(frozen=True, slots=True)
class Found:
    call_id: UUID
    asked_at: datetime
    touched_at: datetime
    fingerprint: str
    seen: Look
    # What people asked since the agent last spoke.
    questions: tuple[str, ...] = ()


async def own(runtime: Runtime, call_id: UUID, *, agent_id: int) -> Found | None:
    """The call as it stands; None if it is unknown or another agent's."""
    try:
        async with runtime.hands.pool.connection(timeout=2) as link:
            cursor = await link.execute(_OWN, (call_id, agent_id))
            row = await cursor.fetchone()
            if row is None:
                return None
            seen = await look(link, [call_id])
    except (psycopg.Error, PoolTimeout) as error:
        raise RecordUnavailable(UNREADABLE) from error
    return Found(call_id, row[0], row[1], row[2], seen[call_id], tuple(row[3] or ()))


async def requested(runtime: Runtime, key: str, *, agent_id: int) -> UUID | None:
    """The live call that a legacy session's request became, wherever it runs."""
    try:
        async with runtime.hands.pool.connection(timeout=2) as link:
            cursor = await link.execute(_REQUESTED, (key, agent_id, list(LIVE)))
            row = await cursor.fetchone()
    except (psycopg.Error, PoolTimeout) as error:
        raise RecordUnavailable(UNREADABLE) from error
    return row[0] if row else None


async def history(runtime: Runtime, asked: Subject, *, but: UUID) -> History | None:
    """For rules that look back; None if it cannot be read in time, so that they ask a person."""
    try:
        async with runtime.hands.pool.connection(timeout=0.5) as link, link.transaction():
            await link.execute(_BRIEFLY)
            cursor = await link.execute(SQL, arguments(asked.agent_id, asked.exposed, but=but))
            row = await cursor.fetchone()
    except (psycopg.Error, PoolTimeout):
        return None
    return of_row(row) if row else None
