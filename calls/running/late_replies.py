"""A reply that came after its call had been given up: evidence for whoever finds out what happened.
It moves nothing by itself."""

from __future__ import annotations

from typing import Any

from audit.services import SYSTEM_NUMBER, first_entry, name_number
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
    INSERT INTO audit_entryrow (
        action, actor, agent, person, tool, call_id, arguments, result, details)
    SELECT """
    + name_number("'action'", "'call.late_reply'")
    + f", {SYSTEM_NUMBER}, e.agent, e.person, e.tool,"
    + """ k.call_id, e.arguments, decode(NULLIF(k.digest, ''), 'hex'),
        jsonb_build_object('state', k.state, 'attempt', k.fence)
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
