"""Calls that expired, with who could have decided them and whom their cards were shown to."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from accounts.models import shown_name

# The cards of a call's people are known for as long as card_views keeps them.
_EXPIRED = """
SELECT c.rule_id, a.decided_at, g.owner_id,
       ARRAY(SELECT t.t ->> 'from' FROM jsonb_array_elements(a.thresholds) t (t)
             WHERE COALESCE((t.t ->> 'after_min')::int, 0) <= a.widened_min),
       ARRAY(SELECT s.person_id FROM approvals_cardview s WHERE s.call_id = a.call_id)
FROM approvals_approval a JOIN calls_call c ON c.id = a.call_id
LEFT JOIN accounts_agent g ON g.id = c.agent_id
WHERE a.state = 'expired' AND a.decided_at >= %(since)s AND a.decided_at < %(until)s
ORDER BY a.decided_at DESC LIMIT %(most)s
"""
_PEOPLE = """
WITH able AS MATERIALIZED (
    SELECT u.id, u.username, u.first_name FROM accounts_user u
    WHERE u.is_active AND approvals_may_decide(u.id)
)
SELECT f.source, u.id, u.username, u.first_name
FROM unnest(%(sources)s::text[]) f (source) JOIN able u ON approvals_is_from(u.id, f.source)
"""


class ExpiredCall(NamedTuple):
    """A call that expired, with the ids of the people who could have decided it, and of those whom
    its card was shown to."""

    rule: int | None
    at: datetime
    asked: frozenset[int]
    shown: frozenset[int]


def read_expired(given: dict[str, Any]) -> tuple[list[ExpiredCall], dict[int, str]]:
    """The expired calls of a week, and the names of the people who could have decided them."""
    rows = _rows(_EXPIRED, given)
    sources = {source for row in rows for source in row[3]}
    people, names = _people_of(sources) if sources else ({}, {})
    calls = []
    for rule, at, owner, asks, shown in rows:
        asked = frozenset(person for source in asks for person in people[source])
        # An agent's owner is not asked about its calls.
        calls.append(ExpiredCall(rule, at, asked - {owner}, frozenset(shown)))
    return calls, names


def _people_of(sources: Collection[str]) -> tuple[dict[str, set[int]], dict[int, str]]:
    people: dict[str, set[int]] = {source: set() for source in sources}
    names = {}
    for source, person, username, display in _rows(_PEOPLE, {"sources": list(sources)}):
        people[source].add(person)
        names[person] = shown_name(username, display)
    return people, names


def _rows(sql: str, given: dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return list(cursor.fetchall())
