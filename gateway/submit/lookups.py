"""Finding an agent's own calls again: for task ids, for awaited calls, for cancelling."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg_pool import PoolTimeout

from calls.content.answers import CallStatus, load_status
from calls.record import resource_links
from calls.record.states import LIVE, NOT_STARTED
from core.errors import RecordUnavailable
from gateway.process.runtime import Runtime
from policies import lookback
from policies.decide import RuleBook, Subject
from policies.history import WITHIN_MS

_OWN = """
    SELECT asked_at, COALESCE(finished_at, sent_at, asked_at) AS touched_at,
        left(COALESCE(NULLIF(call_digest, ''), arguments_digest), 8) AS fingerprint,
        CASE WHEN state = 'held' THEN ARRAY(
            SELECT q.text FROM approvals_comment q
            WHERE q.approval_id = calls_call.id AND q.kind = 'question' AND NOT EXISTS (
                SELECT FROM approvals_comment a
                WHERE a.approval_id = q.approval_id AND a.kind = 'answer' AND a.id > q.id)
            ORDER BY q.id) END AS questions, server_id, tool_id
    FROM calls_call
    WHERE id = %s AND agent_id = %s
"""
# With the states in the text, a plan for any parameters goes by the index of live calls.
_LIVE = ", ".join(f"'{state.value}'" for state in LIVE)
_REQUESTED = f"""
    SELECT id FROM calls_call
    WHERE request_key = %s AND agent_id = %s AND state IN ({_LIVE}) ORDER BY id DESC LIMIT 1
"""
_LISTED = """
    SELECT t.cancelled_at IS NOT NULL FROM calls_listedtask t
    WHERE t.call_id = %s AND t.agent_id = %s
"""
_ALL_LISTED = """
    SELECT t.call_id, c.state, c.asked_at, c.tool_id,
        COALESCE(c.finished_at, c.sent_at, c.asked_at) AS touched_at,
        t.cancelled_at IS NOT NULL AS cancelled, c.state = 'running' AND EXISTS (
            SELECT FROM calls_input i WHERE i.call_id = c.id AND i.response = '') AS asks
    FROM calls_listedtask t JOIN calls_call c ON c.id = t.call_id
    WHERE t.agent_id = %s AND t.call_id < %s ORDER BY t.call_id DESC LIMIT %s
"""
_BRIEFLY = f"SET LOCAL statement_timeout = {WITHIN_MS}"
UNREADABLE = "The record cannot be read right now. Try again soon."
# Of a call that its agent knows to be there.
NOT_KNOWN = (
    "The record cannot be read right now, so what became of this call is not known here. It may "
    "have been executed, and goes on where it runs."
)


class _OwnRow(NamedTuple):
    asked_at: datetime
    touched_at: datetime
    fingerprint: str
    questions: list[str] | None
    server_id: int
    tool_id: int | None


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A call as its own agent may see it."""

    call_id: UUID
    asked_at: datetime
    touched_at: datetime
    fingerprint: str
    seen: CallStatus
    # Questions that people asked since the agent last answered.
    questions: tuple[str, ...] = ()
    # The emergency stop or pause that keeps it from starting; empty without one.
    stopped: str = ""
    tool_id: int | None = None


async def own(runtime: Runtime, call_id: UUID, *, agent_id: int) -> AgentCall | None:
    """The call as it stands; None if it is unknown or another agent's."""
    try:
        async with runtime.call_runtime.pool.connection(timeout=2) as link:
            # Its state first: of one that has ended, the times read after it are the last.
            seen = await load_status(link, [call_id])
            async with link.cursor(row_factory=class_row(_OwnRow)) as cursor:
                row = await (await cursor.execute(_OWN, (call_id, agent_id))).fetchone()
            if row is None or call_id not in seen:
                return None
    except (psycopg.Error, PoolTimeout) as error:
        raise RecordUnavailable(NOT_KNOWN, call_id=call_id) from error
    stopped = ""
    if seen[call_id].state in NOT_STARTED:
        stopped = (await runtime.fresh()).freezes.over(agent_id, row.server_id)
    return AgentCall(
        call_id,
        row.asked_at,
        row.touched_at,
        row.fingerprint,
        seen[call_id],
        tuple(row.questions or ()),
        stopped,
        row.tool_id,
    )


async def requested(runtime: Runtime, key: str, *, agent_id: int) -> UUID | None:
    """The live call that a legacy session's request became, wherever it runs."""
    row = await one(runtime, _REQUESTED, (key, agent_id))
    return row[0] if row else None


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A task of 2025-11-25, without what came of it."""

    call_id: UUID
    state: str
    asked_at: datetime
    touched_at: datetime
    cancelled: bool
    # Its server asks something.
    asks: bool
    tool_id: int | None


async def cancelled_task(runtime: Runtime, call_id: UUID, *, agent_id: int) -> bool | None:
    """Whether the task was cancelled; None where the agent holds no such task."""
    row = await one(runtime, _LISTED, (call_id, agent_id))
    return row[0] if row else None


async def tasks(runtime: Runtime, *, agent_id: int, before: UUID, most: int) -> list[TaskSummary]:
    """The agent's, newest first."""
    try:
        async with (
            runtime.call_runtime.pool.connection(timeout=2) as link,
            link.cursor(row_factory=class_row(TaskSummary)) as cursor,
        ):
            return await (await cursor.execute(_ALL_LISTED, (agent_id, before, most))).fetchall()
    except (psycopg.Error, PoolTimeout) as error:
        raise RecordUnavailable(UNREADABLE) from error


async def one(runtime: Runtime, query: str, given: tuple[Any, ...]) -> Any:
    try:
        async with runtime.call_runtime.pool.connection(timeout=2) as link:
            cursor = await link.execute(query, given)
            return await cursor.fetchone()
    except (psycopg.Error, PoolTimeout) as error:
        raise RecordUnavailable(UNREADABLE) from error


async def linking(runtime: Runtime, uri: str, *, agent_id: int) -> list[int]:
    """The servers with a result for this agent that links to it."""
    try:
        async with runtime.call_runtime.pool.connection(timeout=2) as link:
            cursor = await link.execute(resource_links.FIND, (agent_id, resource_links.digest(uri)))
            return [row[0] for row in await cursor.fetchall()]
    except (psycopg.Error, PoolTimeout) as error:
        raise RecordUnavailable(UNREADABLE) from error


async def look_back(runtime: Runtime, rules: RuleBook, asked: Subject, *, but: UUID) -> None:
    """Stores in the subject what rules need of the past. What cannot be read in time stays None,
    so that they require approval."""
    for query in lookback.queries(rules, asked, but=but):
        with contextlib.suppress(psycopg.Error, PoolTimeout):
            async with (
                runtime.call_runtime.pool.connection(timeout=0.5) as link,
                link.transaction(),
            ):
                await link.execute(_BRIEFLY)
                cursor = await link.execute(query.sql, query.parameters)
                query.keep(asked, await cursor.fetchall())
