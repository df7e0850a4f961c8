"""Statements that create and move calls, each with its entry. The usual cases have statements of
their own (calls/record/usual_calls.py); nothing else writes.

The same SQL serves the journal (many lines in one commit) and `move_now` (one line in the
transaction that the caller holds). Every move is conditional: who finds the call in another
state, or fenced off, changes nothing and is told so.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection, transaction

from audit.services import (
    SYSTEM,
    SYSTEM_NUMBER,
    Actor,
    action_number,
    first_entry,
    name_number,
    reason_number,
)
from calls.record import resource_links
from calls.record.idempotency import LATELY
from calls.record.outcome_chain import CHAIN
from calls.record.statements import call_digest, with_arguments
from calls.record.states import NOT_SENT, TERMINAL, Executed, State
from core import planned
from core.journal import Statement
from core.listen import GENERATION

OPEN = Statement(
    "open",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(
        id uuid, agent_id bigint, agent text, token_id bigint, person_id bigint, person text,
        toolset text, server_id bigint, server text, tool_id bigint, definition_id bigint,
        definition_digest text, tool_name text, arguments text, arguments_digest text,
        origin text, mode text, revision text, client text, request_key text,
        effect text, rule_id bigint, rule text, reason text, outcome text, state text,
        decide_in_s float, start_in_s float, unconfirmed_s float, lease_owner text, lease_s float,
        statement text, call_digest text, grant_id bigint, once text, guarded boolean,
        separate boolean, reserves boolean, details jsonb, names int[])
), opened AS (
    INSERT INTO calls_call (
        id, agent_id, token_id, person_id, toolset, server_id, tool_id, definition_id, tool_name,
        arguments, arguments_digest, origin, mode, revision, client, request_key, effect, rule_id,
        reason, outcome, executed, state, seq, decide_by, start_by, start_after, fence, lease_owner,
        lease_until, sent_at, finished_at, statement, call_digest)
    SELECT
        id, agent_id, token_id, person_id, toolset, server_id, tool_id, definition_id, tool_name,
        convert_to(arguments, 'UTF8'), arguments_digest, origin, mode, revision, client,
        request_key, effect, rule_id, reason, outcome,
        CASE WHEN state IN ('refused', 'invalid') THEN 'no' ELSE '' END, state, 1,
        clock_timestamp() + make_interval(secs => decide_in_s),
        clock_timestamp() + make_interval(secs => start_in_s),
        clock_timestamp() + make_interval(secs => unconfirmed_s),
        CASE WHEN state = 'running' THEN 1 ELSE 0 END,
        lease_owner,
        clock_timestamp() + make_interval(secs => lease_s),
        CASE WHEN state = 'running' THEN clock_timestamp() END,
        CASE WHEN state IN ('refused', 'invalid') THEN clock_timestamp() END,
        statement, call_digest
    FROM asked a
    -- Used up or revoked at this very moment: then nothing is opened, and people are asked.
    WHERE (a.grant_id IS NULL OR (
        SELECT u.grant_id = a.grant_id FROM approvals_grantuse u WHERE u.call_id = a.id) IS TRUE)
    -- It is too much for a limit that counts in this very commit.
    AND (a.reserves IS NOT TRUE OR EXISTS (
        SELECT FROM policies_limituse r WHERE r.call_id = a.id))
    -- Its key is another call's, or it is the same as one that nobody heard the outcome of.
    AND (a.once IS NULL OR (
        SELECT k.call_id = a.id FROM calls_once k WHERE k.id = a.once) IS TRUE)
    AND (a.guarded IS NOT TRUE OR (
        SELECT true FROM calls_call p
        WHERE p.tool_id = a.tool_id AND p.agent_id = a.agent_id
          AND p.arguments_digest = a.arguments_digest AND """
    + LATELY
    + """ LIMIT 1) IS NOT TRUE)
    -- The same agent asking the same of the same tool joins the call that waits.
    AND (a.state <> 'held' OR a.separate IS TRUE
        OR calls_held_alike(a.agent_id, a.tool_id, a.arguments_digest) IS NULL)
    ON CONFLICT DO NOTHING
    RETURNING id
), entries AS (
    INSERT INTO audit_entryrow (
        action, agent, person, tool, context, reason, call_id, seq, from_state, to_state,
        arguments, details)
    SELECT
        """
    + action_number("a.state")
    + "".join(
        f", CASE WHEN a.names IS NULL THEN {number} ELSE a.names[{place}] END"
        for place, number in enumerate(
            (
                name_number("'agent'", "a.agent", subject="a.agent_id"),
                "CASE WHEN a.person_id IS NOT NULL THEN "
                + name_number("'person'", "a.person", subject="a.person_id")
                + " END",
                name_number(
                    "'tool'", "a.tool_name", server="a.server", version="a.definition_digest"
                ),
                name_number("'context'", "a.context"),
                reason_number("a.reason"),
            ),
            start=1,
        )
    )
    + """, a.id, 1, 'received', a.state, decode(a.arguments_digest, 'hex'),
        NULLIF(a.details, '{}')
    FROM (
        SELECT *, CASE WHEN names IS NULL THEN jsonb_build_object(
            'effect', effect, 'rule', rule, 'origin', origin, 'revision', revision,
            'toolset', toolset)::text END AS context
        FROM asked
    ) a JOIN opened o ON o.id = a.id
    RETURNING call_id, ARRAY[agent, person, tool, context, reason] AS names
)
SELECT
    a.id,
    -- A line may come twice when the first commit's fate was unknown.
    o.id IS NOT NULL OR calls_exists(a.id),
    ("""
    + GENERATION
    + """),
    -- What the next call like this one need not look up.
    CASE WHEN a.names IS NULL THEN to_json(e.names) END
FROM asked a LEFT JOIN opened o ON o.id = a.id LEFT JOIN entries e ON e.call_id = a.id
""",
    order=1,
)

# A queued or held call was recorded in time, and its agent is told so: workers may take it, people
# decide on it. Whose record was too late is told that nothing was sent, and nobody confirms it.
# What is confirmed already keeps its time: who joins a held call may come after its approval.
CONFIRM = Statement(
    "confirm",
    """
UPDATE calls_call c SET
    start_after = NULL,
    start_by = CASE WHEN c.state = 'queued'
        THEN c.asked_at + make_interval(secs => a.start_in_s) ELSE c.start_by END
FROM json_to_recordset(%s::json) AS a(id uuid, start_in_s float)
WHERE c.id = a.id AND c.id BETWEEN %s AND %s AND c.fence = 0 AND c.state IN ('queued', 'held')
  AND c.start_after IS NOT NULL
RETURNING c.id
""",
    order=3,
    bounded=True,
)

MOVE = Statement(
    "move",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(
        id uuid, source text, target text, fence int, actor_kind text, actor_id bigint,
        actor text, reason text, outcome text, details jsonb, terminal boolean, start_in_s float,
        start_after_s float,
        lease_owner text, lease_s float, result text, result_kind text, result_size bigint,
        result_digest text, executed text, kept_s float)
), moved AS (
    UPDATE calls_call c SET
        state = a.target,
        seq = c.seq + 1,
        fence = CASE WHEN a.target = 'running' THEN c.fence + 1 ELSE c.fence END,
        lease_owner = a.lease_owner,
        lease_until = clock_timestamp() + make_interval(secs => a.lease_s),
        sent_at = CASE WHEN a.target = 'running' THEN clock_timestamp() ELSE c.sent_at END,
        start_by = COALESCE(clock_timestamp() + make_interval(secs => a.start_in_s), c.start_by),
        finished_at = CASE WHEN a.terminal THEN clock_timestamp() END,
        outcome = COALESCE(a.outcome, c.outcome),
        start_after = clock_timestamp() + make_interval(secs => a.start_after_s),
        -- What an earlier attempt may have done is not undone by a later one that was not sent, nor
        -- by what the server says of that one.
        executed = CASE
            WHEN c.executed = 'unknown' AND c.state IN ('queued', 'running')
                 AND COALESCE(a.executed, 'no') IN ('no', 'reported') THEN 'unknown'
            WHEN a.target = 'running' THEN ''
            ELSE COALESCE(a.executed, c.executed) END,
        result_size = COALESCE(a.result_size, c.result_size),
        result_digest = COALESCE(a.result_digest, c.result_digest)
    FROM asked a
    WHERE c.id = a.id AND c.id BETWEEN %s AND %s AND c.state = a.source
      AND (a.fence IS NULL OR c.fence = a.fence)
    RETURNING c.id, c.seq, c.state, c.fence, c.mode, c.effect, a.source, a.terminal, a.actor_kind,
        a.actor_id, a.actor, a.reason, a.details, a.result, a.result_kind, a.result_digest,
        a.kept_s, c.amendment_id
), entries AS (
    INSERT INTO audit_entryrow (
        action, actor, agent, person, tool, reason, call_id, seq, from_state, to_state, arguments,
        result, details)
    SELECT
        """
    + action_number("m.state")
    # What an agent does with a call, it does with its own.
    + ", CASE WHEN m.actor_kind = 'agent' THEN NULL WHEN m.actor_kind = 'system'"
    + f" AND m.actor = '{SYSTEM.name}' THEN {SYSTEM_NUMBER} ELSE "
    + name_number("m.actor_kind", "m.actor", subject="m.actor_id")
    + " END, e.agent, e.person, e.tool, "
    + reason_number("m.reason")
    + """, m.id, m.seq, m.source, m.state,
        CASE WHEN m.amendment_id IS NULL THEN e.arguments ELSE (
            SELECT decode(x.arguments_digest, 'hex') FROM calls_amendment x
            WHERE x.id = m.amendment_id) END,
        decode(m.result_digest, 'hex'), NULLIF(CASE WHEN m.source = 'running' AND m.terminal
            THEN COALESCE("""
    + CHAIN
    + """, '{}') || COALESCE(m.details, '{}') ELSE m.details END, '{}')
    FROM moved m """
    + first_entry("m.id")
    + """
), results AS (
    INSERT INTO calls_result (call_id, kind, body, kept_until)
    SELECT id, result_kind, decode(result, 'base64'),
        clock_timestamp() + make_interval(secs => kept_s)
    FROM moved WHERE result IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT id, fence,
    -- Short calls are answered where they run: nobody else waits for their first attempt.
    CASE WHEN mode = 'background' OR state = 'queued' OR fence > 1
         THEN pg_notify('countersign_call', id::text)::text END
FROM moved
""",
    order=2,
    bounded=True,
)

# A held call is to be sent with other arguments; only for who saw what it was until now.
AMEND = (
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_record(%s::json) AS r(
        id uuid, seen text, person_id bigint, actor text, arguments text, arguments_digest text,
        statement text, call_digest text, note text, private boolean, details jsonb)
), found AS MATERIALIZED (
    SELECT c.id, c.seq + 1 AS seq FROM calls_call c JOIN asked a ON a.id = c.id
    WHERE c.state = 'held' AND c.call_digest = a.seen FOR UPDATE OF c
), made AS (
    INSERT INTO calls_amendment (
        call_id, seq, person_id, arguments, arguments_digest, call_digest, note, private)
    SELECT f.id, f.seq, a.person_id, convert_to(a.arguments, 'UTF8'), a.arguments_digest,
        a.call_digest, a.note, a.private
    FROM found f JOIN asked a ON a.id = f.id
    RETURNING id, call_id
), moved AS (
    UPDATE calls_call c SET
        seq = f.seq, amendment_id = m.id, statement = a.statement, call_digest = a.call_digest
    FROM found f JOIN asked a ON a.id = f.id JOIN made m ON m.call_id = f.id
    WHERE c.id = f.id
    RETURNING c.id, c.seq, m.id AS amendment_id
), entries AS (
    INSERT INTO audit_entryrow (
        action, actor, agent, person, tool, reason, call_id, seq, from_state, to_state, arguments,
        details)
    SELECT
        """
    + name_number("'action'", "'call.amended'")
    + ", "
    + name_number("'person'", "a.actor", subject="a.person_id")
    + ", e.agent, e.person, e.tool, "
    + reason_number("a.note")
    + """, m.id, m.seq, 'held', 'held', decode(a.arguments_digest, 'hex'), NULLIF(a.details, '{}')
    FROM moved m JOIN asked a ON a.id = m.id """
    + first_entry("m.id")
    + """
)
SELECT amendment_id FROM moved
"""
)


# No moves: how others can go on with a running call, and a lease that ends before its time.
NOTE_TASK = Statement(
    "note task",
    """
UPDATE calls_call c SET upstream_task = a.upstream_task
FROM json_to_recordset(%s::json) AS a(id uuid, fence int, upstream_task text)
WHERE c.id = a.id AND c.id BETWEEN %s AND %s AND c.fence = a.fence AND c.state = 'running'
RETURNING c.id
""",
    order=3,
    bounded=True,
)
# The same attempt sends its request once more, because its server wants it so.
RESEND = Statement(
    "resend",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(id uuid, fence int, reason text, send int)
), entries AS (
    INSERT INTO audit_entryrow (
        action, actor, agent, person, tool, reason, call_id, arguments, details)
    SELECT """
    + name_number("'action'", "'call.sent_again'")
    + f", {SYSTEM_NUMBER}, e.agent, e.person, e.tool, "
    + reason_number("a.reason")
    + """, c.id,
        CASE WHEN c.amendment_id IS NULL THEN e.arguments ELSE (
            SELECT decode(x.arguments_digest, 'hex') FROM calls_amendment x
            WHERE x.id = c.amendment_id) END,
        jsonb_build_object('attempt', c.fence, 'send', a.send)
    FROM asked a JOIN calls_call c ON c.id = a.id AND c.fence = a.fence AND c.state = 'running' """
    + first_entry("c.id")
    + """
    RETURNING call_id
)
SELECT call_id FROM entries
""",
    order=3,
)
LET_GO = Statement(
    "let go",
    """
UPDATE calls_call c SET lease_until = clock_timestamp()
FROM json_to_recordset(%s::json) AS a(id uuid, fence int)
WHERE c.id = a.id AND c.id BETWEEN %s AND %s AND c.fence = a.fence AND c.state = 'running'
RETURNING c.id
""",
    order=3,
    bounded=True,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a running call ended. Queued: not for good, it goes again `after_s` seconds."""

    state: State
    sentence: str
    executed: Executed
    result: bytes | None = None
    kind: str = "result"
    after_s: float | None = None
    # What its entry says besides.
    details: dict[str, Any] | None = None
    # As its server sent it, where that is not what is passed on; then sealed, where it is kept.
    received: bytes | None = None
    sealed: str | None = None


@dataclass(slots=True)
class Move:
    """One line of MOVE. `fence` guards against a worker that was given up."""

    id: UUID
    source: State
    target: State
    actor: Actor
    reason: str = ""
    fence: int | None = None
    # Replaces the call's sentence on how it ended, where given.
    outcome: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    start_in_s: float | None = None
    start_after_s: float | None = None
    lease_owner: str = ""
    executed: Executed | None = None

    def line(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "source": self.source,
            "target": self.target,
            "fence": self.fence,
            "actor_kind": self.actor.kind,
            "actor_id": self.actor.id,
            "actor": self.actor.name,
            "reason": self.reason,
            "outcome": self.outcome,
            "details": self.details,
            "terminal": self.target in TERMINAL,
            "executed": self.executed or (Executed.NO if self.target in NOT_SENT else None),
            "start_in_s": self.start_in_s,
            "start_after_s": self.start_after_s,
            "lease_owner": self.lease_owner,
            "lease_s": settings.LEASE_S if self.target == State.RUNNING else None,
        }


def ended(call_id: UUID, fence: int, outcome: Outcome, actor: Actor) -> Move:
    """A running call or its attempt ends."""
    return Move(
        call_id,
        State.RUNNING,
        outcome.state,
        actor,
        reason=outcome.sentence,
        fence=fence,
        outcome=outcome.sentence,
        details=outcome.details or {},
        executed=outcome.executed,
        start_in_s=None if outcome.after_s is None else settings.START_WITHIN_S,
        start_after_s=outcome.after_s,
    )


def ending(call_id: UUID, fence: int, outcome: Outcome, actor: Actor) -> dict[str, Any]:
    """The line of it, with what came back."""
    if outcome.sentence or outcome.after_s is not None or outcome.details is not None:
        line = ended(call_id, fence, outcome, actor).line()
    else:
        usual = _usually(outcome.state, outcome.executed, actor)
        line = {**usual, "id": call_id, "fence": fence}
    if outcome.result is not None:
        line |= {
            "result": b64encode(outcome.result).decode(),
            "result_kind": outcome.kind,
            "result_size": len(outcome.result),
            "result_digest": hashlib.sha256(outcome.result).hexdigest(),
        }
        has_links = resource_links.MARK in outcome.result
        if has_links and (found := resource_links.digests(outcome.result)):
            line["links"] = found
    return line


@lru_cache(maxsize=64)
def _usually(state: State, executed: Executed, actor: Actor) -> dict[str, Any]:
    """The members that lines of nearly all succeeded calls have in common."""
    some_call = UUID(int=0)
    return ended(some_call, 0, Outcome(state, "", executed), actor).line()


def move_now(move: Move) -> bool:
    """Move one call in the caller's transaction; False when it was no longer there."""
    with transaction.atomic(savepoint=False):
        return planned.execute(MOVE.sql, MOVE.of_one(move.line())).fetchone() is not None


@dataclass(frozen=True, slots=True)
class Amending:
    """The line of AMEND. `seen`: the call's digest as it was shown; `statement`: as it was then."""

    id: UUID
    seen: str
    statement: str
    arguments: bytes
    person: Actor
    note: str = ""
    private: bool = False
    # The rule that asks a person about these arguments and its reason; None if rules would allow.
    asks: tuple[str, str] | None = None

    def line(self) -> dict[str, Any]:
        statement = with_arguments(self.statement, self.arguments)
        digest = call_digest(statement)
        return {
            "id": self.id,
            "seen": self.seen,
            "person_id": self.person.id,
            "actor": self.person.name,
            "arguments": self.arguments.decode(),
            "arguments_digest": hashlib.sha256(self.arguments).hexdigest(),
            "statement": statement,
            "call_digest": digest,
            "note": self.note,
            "private": self.private,
            "details": {
                "was": self.seen,
                "call_digest": digest,
                "private": self.private,
                **({"rule": self.asks[0], "why": self.asks[1]} if self.asks else {}),
            },
        }


def amend_now(amending: Amending) -> bool:
    """In the caller's transaction; False when the call was no longer held, or another."""
    with connection.cursor() as cursor:
        cursor.execute(AMEND, [orjson.dumps(amending.line()).decode()])
        return cursor.fetchone() is not None
