"""Do votes, decisions and standing approvals stand in the record?

Each is written with its entry, in one transaction; one without was put into the database directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connection

# So many of each kind are named at most.
FINDINGS_MAX = 50

# Where it was forgotten who said something of a call, the call's are counted together: 0 is nobody.
UNNAMED = """(
    SELECT true FROM audit_entryrow f JOIN audit_name n ON n.id = f.actor
    WHERE f.call_id = {call} AND f.seq IS NULL AND n.kind = 'person' AND n.salt IS NULL LIMIT 1)"""
PERSON = {
    "person": f"CASE WHEN {UNNAMED.format(call='approval_id')} THEN 0 ELSE person_id END",
    "actor": f"CASE WHEN {UNNAMED.format(call='audit_entry.call_id')} THEN 0 ELSE actor_id END",
}

# How often somebody said the same of the same: by rows, and by entries.
VOTES = """
    SELECT call_id, person_id, rows, entries FROM (
        SELECT approval_id AS call_id, {person} AS person_id, approve, seen_digest, step_up,
            count(*) AS rows
        FROM approvals_vote GROUP BY 1, 2, 3, 4, 5
    ) v FULL JOIN (
        SELECT call_id, {actor} AS person_id, (details ->> 'approve')::boolean AS approve,
               details ->> 'seen_digest' AS seen_digest, details ->> 'step_up' AS step_up,
               count(*) AS entries
        FROM audit_entry
        WHERE action = 'approval.voted' AND call_id IS NOT NULL AND seq IS NULL
        GROUP BY 1, 2, 3, 4, 5
    ) e USING (call_id, person_id, approve, seen_digest, step_up)
    WHERE rows IS DISTINCT FROM entries ORDER BY call_id, person_id LIMIT %s
""".format(**PERSON)
TAKEN_BACK = """
    SELECT call_id, person_id, rows, entries FROM (
        SELECT approval_id AS call_id, {person} AS person_id, count(*) AS rows
        FROM approvals_vote WHERE fallen_why = 'taken_back' GROUP BY 1, 2
    ) v FULL JOIN (
        SELECT call_id, {actor} AS person_id, count(*) AS entries FROM audit_entry
        WHERE action = 'approval.taken_back' AND call_id IS NOT NULL AND seq IS NULL GROUP BY 1, 2
    ) e USING (call_id, person_id)
    WHERE rows IS DISTINCT FROM entries ORDER BY call_id, person_id LIMIT %s
""".format(**PERSON)
VOIDED = """
    SELECT v.approval_id, v.person_id FROM approvals_vote v
    WHERE v.fallen_why = 'disabled' AND (
        SELECT true FROM audit_entry e
        WHERE e.call_id = v.approval_id AND e.seq IS NULL AND e.action = 'approval.voided'
          AND e.details ->> 'voter' = v.person_id::text LIMIT 1) IS NOT TRUE
    ORDER BY 1, 2 LIMIT %s
"""
# By an edit, which is a move of the call that stays held.
EDITED = """
    SELECT v.approval_id, v.person_id FROM approvals_vote v
    WHERE v.fallen_at IS NOT NULL AND v.fallen_why NOT IN ('taken_back', 'disabled') AND (
        SELECT true FROM audit_entry e
        WHERE e.call_id = v.approval_id AND e.seq IS NOT NULL
          AND e.from_state = 'held' AND e.to_state = 'held' LIMIT 1) IS NOT TRUE
    ORDER BY 1, 2 LIMIT %s
"""
DECIDED = """
    SELECT a.call_id, a.state FROM approvals_approval a
    WHERE a.state <> 'waiting' AND (
        SELECT true FROM audit_entry e
        WHERE e.call_id = a.call_id AND e.seq IS NOT NULL AND e.from_state = 'held'
          AND CASE WHEN a.state IN ('approved', 'denied') THEN e.to_state = a.state
                   ELSE e.to_state NOT IN ('held', 'approved', 'denied') END
        LIMIT 1) IS NOT TRUE
    ORDER BY 1 LIMIT %s
"""
GRANTS = """
    SELECT g.id, kind FROM approvals_grant g
    CROSS JOIN LATERAL (VALUES ('grant.made', true), ('grant.revoked', g.revoked_at IS NOT NULL))
        AS k (kind, due)
    WHERE k.due AND (
        SELECT true FROM audit_entry e
        WHERE e.call_id = g.call_id AND e.seq IS NULL AND e.action = k.kind
          AND e.details ->> 'grant' = g.id::text LIMIT 1) IS NOT TRUE
    ORDER BY 1, 2 LIMIT %s
"""

BREAK_GLASS = """
    SELECT b.id, kind FROM approvals_breakglass b
    CROSS JOIN LATERAL (
        VALUES ('break_glass.used', true), ('break_glass.reviewed', b.reviewed_at IS NOT NULL))
        AS k (kind, due)
    WHERE k.due AND (
        SELECT true FROM audit_entry e
        WHERE e.call_id = b.approval_id AND e.seq IS NULL AND e.action = k.kind LIMIT 1) IS NOT TRUE
    ORDER BY 1, 2 LIMIT %s
"""


def unrecorded() -> list[str]:
    """A sentence for each. All of one moment of the database, or a vote of now would be one."""
    return [*_counted(VOTES, "vote"), *_counted(TAKEN_BACK, "vote taken back"), *_lacking()]


def _counted(query: str, what: str) -> Iterator[str]:
    for call_id, person_id, rows, entries in _rows(query):
        if (rows or 0) > (entries or 0):
            yield f"A {what} of person {person_id} on call {call_id} has no entry."
        else:
            yield (
                f"An entry tells of a {what} of person {person_id} on call {call_id}, and there is "
                "none."
            )


def _lacking() -> Iterator[str]:
    for call_id, person_id in _rows(EDITED):
        yield f"A vote of person {person_id} on call {call_id} fell by an edit that has no entry."
    for call_id, person_id in _rows(VOIDED):
        yield f"A vote of person {person_id} on call {call_id} was voided, and no entry says so."
    for call_id, state in _rows(DECIDED):
        yield f"The approval of call {call_id} is {state}, and no entry says so."
    for grant, action in _rows(GRANTS):
        yield f"Standing approval {grant} has no entry {action}."
    for used, action in _rows(BREAK_GLASS):
        yield f"Use {used} of break-glass has no entry {action}."


def _rows(query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, [FINDINGS_MAX])
        return list(cursor.fetchall())
