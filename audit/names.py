"""From names to their numbers, by which entries are found; and names that somebody changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Left

from audit.models import Name

CHANGED = """
    SELECT DISTINCT r.id FROM audit_entryrow r
    CROSS JOIN LATERAL unnest(
        ARRAY[r.action, r.actor, r.agent, r.person, r.tool, r.context, r.reason]) AS used (number)
    JOIN audit_name n ON n.id = used.number
    -- One that was forgotten says nothing.
    WHERE r.id = ANY(%s) AND COALESCE(
        n.commitment <> audit_commitment(
            n.salt, n.kind, n.subject, n.text, n.server, n.definition),
        n.subject IS NOT NULL OR n.text || n.server || n.definition <> '')
    ORDER BY r.id
"""


class FoundName(NamedTuple):
    pk: int
    kind: str
    text: str
    server: str
    definition: str


class NameFilter(NamedTuple):
    """Of one column of EntryRow: which names, as SQL finds them and as they are."""

    column: str
    names: Q
    fits: Callable[[FoundName], bool]


def named(given: Mapping[str, str]) -> Q:
    """Of EntryRow, what the audit page's filters ask for (audit/filters.py): no entry has what no
    name has. Asks the database once."""
    wanted = [*_called(given), *_of_tools(given), *_of_contexts(given)]
    asked = Q()
    if not wanted:
        return asked
    names = Q()
    for one in wanted:
        names |= one.names
    rows = Name.objects.alias(head=Left("text", 500)).filter(names)
    known = [FoundName(*row) for row in rows.values_list(*FoundName._fields)]
    for one in wanted:
        asked &= Q(**{f"{one.column}__in": [name.pk for name in known if one.fits(name)]})
    return asked


def _called(given: Mapping[str, str]) -> list[NameFilter]:
    state = given.get("state")
    asked = [
        ("actor", "person", given.get("person")),
        ("agent", "agent", given.get("agent")),
        ("person", "person", given.get("behalf")),
        ("action", "action", given.get("action")),
        ("action", "action", state and f"call.{state}"),
    ]
    return [_of_text(column, kind, text) for column, kind, text in asked if text]


def _of_text(column: str, kind: str, text: str) -> NameFilter:
    # The head is what the index knows.
    return NameFilter(
        column,
        Q(kind=kind, head=text[:500], text=text),
        lambda name: (name.kind, name.text) == (kind, text),
    )


def _of_tools(given: Mapping[str, str]) -> list[NameFilter]:
    tool, server = given.get("tool"), given.get("server")
    version = given.get("version", "")[:16]
    if not (tool or server or version):
        return []
    names = Q(kind="tool", definition__startswith=version)
    if tool:
        names &= Q(head=tool[:500], text=tool)
    if server:
        names &= Q(server=server)

    def fits(name: FoundName) -> bool:
        return (
            name.kind == "tool"
            and (not tool or name.text == tool)
            and (not server or name.server == server)
            and name.definition.startswith(version)
        )

    return [NameFilter("tool", names, fits)]


def _of_contexts(given: Mapping[str, str]) -> list[NameFilter]:
    columns = {"decision": "effect", "rule": "rule"}
    facts = {column: given[name] for name, column in columns.items() if name in given}
    if not facts:
        return []

    def fits(name: FoundName) -> bool:
        return name.kind == "context" and facts.items() <= json.loads(name.text).items()

    # A few for each rule: every kind of call that it ever decided.
    return [NameFilter("context", Q(kind="context"), fits)]


def changed(ids: Collection[int]) -> list[int]:
    """Of these entries, those with a name that is not what it was: filters may not find them."""
    with connection.cursor() as cursor:
        cursor.execute(CHANGED, [list(ids)])
        return [pk for (pk,) in cursor.fetchall()]
