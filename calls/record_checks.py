"""Are calls what the record says of them?

Each moves with its entry, which has the digests of what was asked and of what came back: what
differs was put into the database directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connection

# So many of each kind are named at most.
FINDINGS_MAX = 50

# Calls of months that were archived and removed, as far as nobody put them back.
ARCHIVED = """EXISTS (
    SELECT FROM audit_entryrow x JOIN audit_name k ON k.id = x.action
    WHERE k.kind = 'action' AND k.text = 'record.archived'
      AND {call} >= (x.details ->> 'first')::uuid AND {call} < (x.details ->> 'last')::uuid)"""
# Of calls whose payload, or result, was erased.
ERASED = """EXISTS (
    SELECT FROM audit_entryrow x JOIN audit_name k ON k.id = x.action
    WHERE x.call_id = {call} AND x.seq IS NULL
      AND k.kind = 'action' AND k.text IN ({what}))"""
PAYLOAD = "'payload.erased'"
# Of all calls, or of those that have an entry of `since` or later.
LATELY = "{column} IN (SELECT call_id FROM audit_entryrow WHERE id >= %(since)s)"
STEPS = """
    SELECT COALESCE(m.id, r.call_id), m.seq, m.state, m.entry_seq, m.steps, m.entry_state,
        m.result_digest = m.digest,
        r.call_id IS NULL OR COALESCE(m.digest, '') <> ''
    FROM (
        SELECT COALESCE(c.id, e.call_id) AS id, c.seq, c.state, c.result_digest,
            e.seq AS entry_seq, e.steps, e.state AS entry_state,
            COALESCE(encode(e.result, 'hex'), '') AS digest
        FROM (SELECT id, seq, state, result_digest FROM calls_call c WHERE {of_calls}) c
        FULL JOIN (
            SELECT call_id, max(seq) AS seq, count(*) AS steps,
                (array_agg(to_state ORDER BY seq DESC))[1] AS state,
                (array_agg(result ORDER BY seq DESC) FILTER (WHERE result IS NOT NULL))[1] AS result
            FROM audit_entryrow e WHERE seq IS NOT NULL AND {of_entries} GROUP BY call_id
        ) e ON e.call_id = c.id
    ) m
    FULL JOIN (SELECT call_id FROM calls_result r WHERE {of_results}) r ON r.call_id = m.id
    WHERE ((m.seq, m.state, m.result_digest) IS DISTINCT FROM (m.entry_seq, m.entry_state, m.digest)
        OR m.steps <> m.entry_seq OR r.call_id IS NOT NULL AND COALESCE(m.digest, '') = '')
        AND NOT (m.seq IS NULL AND m.id IS NOT NULL AND {archived_call})
    ORDER BY 1 LIMIT %(most)s
"""
# An amendment changes what is sent, and not what was asked.
ASKED = """
    SELECT id, is_for_it FROM (
        SELECT c.id, (sha256(c.arguments) = e.arguments
                    OR c.arguments = '{{}}' AND {erased_call})
                AND c.arguments_digest = encode(e.arguments, 'hex') AS is_as_asked,
            -- Of names that nobody forgot.
            (agent.salt IS NULL OR agent.subject = c.agent_id)
                AND (person.salt IS NULL OR person.subject = c.person_id)
                AND tool.text = c.tool_name AS is_for_it
        FROM calls_call c
        JOIN audit_entryrow e ON e.call_id = c.id AND e.seq = 1
        LEFT JOIN audit_name agent ON agent.id = e.agent
        LEFT JOIN audit_name person ON person.id = e.person
        LEFT JOIN audit_name tool ON tool.id = e.tool
        WHERE {of_calls}
    ) asked WHERE (is_as_asked AND is_for_it) IS NOT TRUE
    ORDER BY 1 LIMIT %(most)s
"""
AMENDED = """
    SELECT a.call_id FROM calls_amendment a
    WHERE {of_amendments} AND (
        SELECT true FROM audit_entryrow e
        WHERE e.call_id = a.call_id AND e.seq = a.seq AND e.arguments = sha256(a.arguments)
    ) IS NOT TRUE AND NOT (a.arguments = '{{}}' AND {erased_amendment})
    ORDER BY 1 LIMIT %(most)s
"""
# Of a large result the parts, as long as they are kept; of attempts the first that brought one.
RESULTS = """
    SELECT DISTINCT e.call_id FROM audit_entryrow e
    LEFT JOIN calls_result r ON r.call_id = e.call_id
    CROSS JOIN LATERAL (
        SELECT sha256(CASE WHEN r.kept_until IS NULL THEN r.body ELSE (
            SELECT string_agg(p.body, '' ORDER BY p.number) FROM calls_resultpart p
            WHERE p.call_id = r.call_id) END) AS digest
    ) b
    WHERE e.result IS NOT NULL AND e.seq IS NOT NULL AND {of_entries}
      AND (r.call_id IS NULL OR b.digest <> e.result AND b.digest <> ALL (
        SELECT x.result FROM audit_entryrow x
        WHERE x.call_id = e.call_id AND x.seq IS NOT NULL AND x.result IS NOT NULL))
      AND NOT (r.call_id IS NULL AND ({archived_entry} OR {erased_result}))
    ORDER BY 1 LIMIT %(most)s
"""


def unrecorded(since: int = 0) -> list[str]:
    """A sentence for each; of calls with an entry of that id or later."""
    return [
        *_moved(since),
        *_request_findings(since),
        *_differing("The arguments that call {} was changed to are not those", AMENDED, since),
        *_differing("The result of call {} is not that", RESULTS, since),
    ]


def _moved(since: int) -> Iterator[str]:
    for call_id, seq, state, entry_seq, steps, entry_state, is_digest, has_move in _rows(
        STEPS, since
    ):
        if not has_move:
            yield f"The result of call {call_id} is of no move that has an entry."
        elif seq is None:
            yield f"Call {call_id} is gone: its entries are still there."
        elif entry_seq is None:
            yield f"Call {call_id} has no entry."
        elif steps != entry_seq and seq == entry_seq:
            yield f"Call {call_id} made {seq} moves, and {steps} of them have an entry."
        elif not is_digest:
            yield f"The digest of the result of call {call_id} is not that of its entry."
        else:
            yield (
                f"Call {call_id} is {state} after {seq} moves, and its entries say {entry_state} "
                f"after {entry_seq}."
            )


def _request_findings(since: int) -> Iterator[str]:
    for call_id, is_for_it in _rows(ASKED, since):
        what = "The arguments" if is_for_it else "Agent, person or tool"
        yield f"{what} of call {call_id} are not those of its entry."


def _differing(said: str, query: str, since: int) -> Iterator[str]:
    return (f"{said.format(pk)} of its entry." for (pk,) in _rows(query, since))


def _rows(query: str, since: int) -> list[tuple[Any, ...]]:
    columns = {
        "of_calls": "c.id",
        "of_entries": "e.call_id",
        "of_amendments": "a.call_id",
        "of_results": "r.call_id",
    }
    lately = {
        name: LATELY.format(column=column) if since else "true" for name, column in columns.items()
    }
    lately["archived_call"] = ARCHIVED.format(call="m.id")
    lately["archived_entry"] = ARCHIVED.format(call="e.call_id")
    for name, call in {"call": "c.id", "amendment": "a.call_id"}.items():
        lately[f"erased_{name}"] = ERASED.format(call=call, what=PAYLOAD)
    result = f"{PAYLOAD}, 'result.erased'"
    lately["erased_result"] = ERASED.format(call="e.call_id", what=result)
    with connection.cursor() as cursor:
        cursor.execute(query.format(**lately), {"since": since, "most": FINDINGS_MAX})
        return list(cursor.fetchall())
