"""A reply that came after its call had been given up: evidence for whoever finds out what happened.
It moves nothing by itself."""

from __future__ import annotations

from typing import Any

from audit.services import first_entry
from core.journal import Statement

LATE = Statement(
    "late",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(
        id uuid, target text, fence int, outcome text, executed text, result text,
        result_kind text, result_digest text, received_at double precision)
), kept AS (
    INSERT INTO calls_latereply
        (call_id, fence, state, sentence, executed, kind, body, digest, received_at)
    SELECT a.id, a.fence, a.target, a.outcome, a.executed, COALESCE(a.result_kind, ''),
        COALESCE(decode(a.result, 'base64'), ''), COALESCE(a.result_digest, ''),
        to_timestamp(a.received_at)
    FROM asked a JOIN calls_call c ON c.id = a.id
    -- Written down after all: by a commit whose fate was unknown, or from the spool.
    WHERE NOT (c.fence = a.fence AND c.outcome = a.outcome AND c.executed = a.executed
               AND c.state = a.target AND c.result_digest = COALESCE(a.result_digest, ''))
    ON CONFLICT DO NOTHING
    RETURNING call_id, fence, state, digest
), entries AS (
    INSERT INTO audit_entry (
        action, actor_kind, actor, call_id, agent_id, agent, person_id, person, server, tool,
        definition_digest, arguments_digest, result_digest, reason, details)
    SELECT 'call.late_reply', 'system', 'countersign', k.call_id, e.agent_id, e.agent,
        e.person_id, e.person, e.server, e.tool, e.definition_digest, e.arguments_digest,
        k.digest, '', jsonb_build_object('state', k.state, 'attempt', k.fence)
    FROM kept k """
    + first_entry("k.call_id")
    + """
)
SELECT call_id, pg_notify('countersign_call', call_id::text)::text FROM kept
""",
    order=3,
)


def is_evidence(line: dict[str, Any]) -> bool:
    """Does it say anything about what happened?"""
    return line.get("result") is not None or line["executed"] != "unknown"
