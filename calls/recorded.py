"""Are calls what the record says of them?

Each moves with its entry, which has the digests of what was asked and of what came back: what
differs was put into the database directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connection

# So many of each kind are named at most.
MOST = 50

# Of all calls, or of those that have an entry of `since` or later.
LATELY = "{column} IN (SELECT call_id FROM audit_entryrow WHERE id >= %(since)s)"
STEPS = """
    SELECT COALESCE(c.id, e.call_id), c.seq, c.state, e.seq, e.steps, e.state
    FROM (SELECT id, seq, state FROM calls_call c WHERE {of_calls}) c
    FULL JOIN (
        SELECT call_id, max(seq) AS seq, count(*) AS steps,
            (array_agg(to_state ORDER BY seq DESC))[1] AS state
        FROM audit_entryrow e WHERE seq IS NOT NULL AND {of_entries} GROUP BY call_id
    ) e ON e.call_id = c.id
    WHERE (c.seq, c.state) IS DISTINCT FROM (e.seq, e.state) OR e.steps <> e.seq
    ORDER BY 1 LIMIT %(most)s
"""
# An amendment changes what is sent, and not what was asked.
ARGUMENTS = """
    SELECT c.id FROM calls_call c
    JOIN audit_entryrow e ON e.call_id = c.id AND e.seq = 1
    WHERE {of_calls} AND (sha256(c.arguments) IS DISTINCT FROM e.arguments
        OR decode(c.arguments_digest, 'hex') IS DISTINCT FROM e.arguments)
    ORDER BY 1 LIMIT %(most)s
"""
AMENDED = """
    SELECT a.call_id FROM calls_amendment a
    WHERE {of_amendments} AND (
        SELECT true FROM audit_entryrow e
        WHERE e.call_id = a.call_id AND e.seq = a.seq AND e.arguments = sha256(a.arguments)
    ) IS NOT TRUE
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
    ORDER BY 1 LIMIT %(most)s
"""
# What came back last, and which digest the call's row has of it.
DIGESTS = """
    SELECT c.id FROM calls_call c
    JOIN (
        SELECT call_id,
            (array_agg(result ORDER BY seq DESC) FILTER (WHERE result IS NOT NULL))[1] AS result
        FROM audit_entryrow e WHERE seq IS NOT NULL AND {of_entries} GROUP BY call_id
    ) e ON e.call_id = c.id
    WHERE c.result_digest <> COALESCE(encode(e.result, 'hex'), '')
    ORDER BY 1 LIMIT %(most)s
"""
# Who asked, on whose behalf, for what; of names that nobody forgot.
ASKED = """
    SELECT c.id FROM calls_call c
    JOIN audit_entryrow e ON e.call_id = c.id AND e.seq = 1
    LEFT JOIN audit_name agent ON agent.id = e.agent
    LEFT JOIN audit_name person ON person.id = e.person
    LEFT JOIN audit_name tool ON tool.id = e.tool
    WHERE {of_calls} AND (
        agent.salt IS NOT NULL AND agent.subject IS DISTINCT FROM c.agent_id
        OR person.salt IS NOT NULL AND person.subject IS DISTINCT FROM c.person_id
        OR tool.text IS DISTINCT FROM c.tool_name)
    ORDER BY 1 LIMIT %(most)s
"""
# Of calls whose entries say that nothing came back.
STRAY = """
    SELECT r.call_id FROM calls_result r
    WHERE {of_results} AND NOT EXISTS (
        SELECT FROM audit_entryrow e
        WHERE e.call_id = r.call_id AND e.seq IS NOT NULL AND e.result IS NOT NULL)
    ORDER BY 1 LIMIT %(most)s
"""


def unrecorded(since: int = 0) -> list[str]:
    """A sentence for each; of calls with an entry of that id or later."""
    return [
        *_moved(since),
        *_differing("The arguments of call {} are not those", ARGUMENTS, since),
        *_differing("The arguments that call {} was changed to are not those", AMENDED, since),
        *_differing("The result of call {} is not that", RESULTS, since),
        *_differing("The digest of the result of call {} is not that", DIGESTS, since),
        *_differing("Agent, person or tool of call {} are not those", ASKED, since),
        *_differing("The result of call {} is one for which there is no move,", STRAY, since),
    ]


def _moved(since: int) -> Iterator[str]:
    for call_id, seq, state, entry_seq, steps, entry_state in _rows(STEPS, since):
        if seq is None:
            yield f"Call {call_id} is gone: its entries are still there."
        elif entry_seq is None:
            yield f"Call {call_id} has no entry."
        elif (seq, state) == (entry_seq, entry_state):
            yield f"Call {call_id} made {seq} moves, and {steps} of them have an entry."
        else:
            yield (
                f"Call {call_id} is {state} after {seq} moves, and its entries say {entry_state} "
                f"after {entry_seq}."
            )


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
    with connection.cursor() as cursor:
        cursor.execute(query.format(**lately), {"since": since, "most": MOST})
        return list(cursor.fetchall())
