"""OPEN and MOVE once more, for what nearly all calls are: allowed, like one before, and answered.

PostgreSQL starts every part of a statement at each execution, also those that none of its lines
needs. These have only what such calls need, and write the very same rows.
"""

from __future__ import annotations

from audit.services import SYSTEM_NUMBER, first_entry
from calls.record.idempotency import LATELY
from calls.record.outcome_chain import CHAIN
from core.journal import Statement
from core.listen import GENERATION

# Numbers of audit/sql/first_names.sql.
RUNNING, SUCCEEDED = 1, 2

# The names of its entry have numbers (NewCallTemplate.learn), and nothing but its arguments may
# keep it from being opened: neither a key nor a grant.
OPEN_USUAL = Statement(
    "open usual",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(
        id uuid, agent_id bigint, token_id bigint, person_id bigint, toolset text,
        server_id bigint, tool_id bigint, definition_id bigint, tool_name text, arguments text,
        arguments_digest text, origin text, mode text, revision text, client text,
        request_key text, effect text, rule_id bigint, reason text, lease_owner text,
        lease_s float, guarded boolean, details jsonb, names int[])
), opened AS (
    INSERT INTO calls_call (
        id, agent_id, token_id, person_id, toolset, server_id, tool_id, definition_id, tool_name,
        arguments, arguments_digest, origin, mode, revision, client, request_key, effect, rule_id,
        reason, outcome, executed, state, seq, fence, lease_owner, lease_until, sent_at, statement,
        call_digest)
    SELECT
        id, agent_id, token_id, person_id, toolset, server_id, tool_id, definition_id, tool_name,
        convert_to(arguments, 'UTF8'), arguments_digest, origin, mode, revision, client,
        request_key, effect, rule_id, reason, '', '', 'running', 1, 1, lease_owner,
        clock_timestamp() + make_interval(secs => lease_s), clock_timestamp(), '', ''
    FROM asked a
    WHERE a.guarded IS NOT TRUE OR (
        SELECT true FROM calls_call p
        WHERE p.tool_id = a.tool_id AND p.agent_id = a.agent_id
          AND p.arguments_digest = a.arguments_digest AND """
    + LATELY
    + f""" LIMIT 1) IS NOT TRUE
    ON CONFLICT DO NOTHING
    RETURNING id
), entries AS (
    INSERT INTO audit_entryrow (
        action, agent, person, tool, context, reason, call_id, seq, from_state, to_state,
        arguments, details)
    SELECT
        {RUNNING}, a.names[1], a.names[2], a.names[3], a.names[4], a.names[5], a.id, 1,
        'received', 'running', decode(a.arguments_digest, 'hex'), NULLIF(a.details, '{{}}')
    FROM asked a JOIN opened o ON o.id = a.id
)
SELECT
    a.id, o.id IS NOT NULL OR calls_exists(a.id), ({GENERATION}), NULL::json
FROM asked a LEFT JOIN opened o ON o.id = a.id
""",
    order=1,
)

# Its server's answer is a result, which it did not give as an error, and nothing is to be said.
SUCCEED = Statement(
    "succeed",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(
        id uuid, fence int, result text, result_kind text, result_size bigint, result_digest text,
        kept_s float)
), moved AS (
    UPDATE calls_call c SET
        state = 'succeeded', seq = c.seq + 1, lease_owner = '', lease_until = NULL,
        finished_at = clock_timestamp(), outcome = '', start_after = NULL, executed = 'yes',
        result_size = COALESCE(a.result_size, c.result_size),
        result_digest = COALESCE(a.result_digest, c.result_digest)
    FROM asked a
    WHERE c.id = a.id AND c.id BETWEEN %s AND %s AND c.state = 'running' AND c.fence = a.fence
    RETURNING c.id, c.seq, c.fence, c.mode, c.effect, a.result, a.result_kind, a.result_digest,
        a.kept_s, c.amendment_id
), entries AS (
    INSERT INTO audit_entryrow (
        action, actor, agent, person, tool, call_id, seq, from_state, to_state, arguments, result,
        details)
    SELECT
        """
    + f"""{SUCCEEDED}, {SYSTEM_NUMBER}, e.agent, e.person, e.tool, m.id, m.seq,
        'running', 'succeeded', CASE WHEN m.amendment_id IS NULL THEN e.arguments ELSE (
            SELECT decode(x.arguments_digest, 'hex') FROM calls_amendment x
            WHERE x.id = m.amendment_id) END,
        decode(m.result_digest, 'hex'), {CHAIN}
    FROM moved m {first_entry("m.id")}
), results AS (
    INSERT INTO calls_result (call_id, kind, body, kept_until)
    SELECT id, result_kind, decode(result, 'base64'),
        clock_timestamp() + make_interval(secs => kept_s)
    FROM moved WHERE result IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT id, fence,
    -- As MOVE: short calls are answered where they run.
    CASE WHEN mode = 'background' OR fence > 1
         THEN pg_notify('countersign_call', id::text)::text END
FROM moved
""",
    order=2,
    bounded=True,
)
