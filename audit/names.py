"""Names and their numbers, by which entries are found; and names that were changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from audit.models import Entry, EntryRow, Name
from audit.models.entries import BLOCK, COMMON_ACTIONS

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
    """A filter on one column of EntryRow: the names, as SQL condition and as values."""

    column: str
    names: Q
    fits: Callable[[FoundName], bool]


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A filter on EntryRow, and the order in which an index has what fits."""

    rows: Q = field(default_factory=Q)
    # By an index that knows blocks of ids (audit/models/entries.py::BLOCK), else by id.
    by_block: bool = False

    def narrow(self, also: Q) -> Self:
        return type(self)(self.rows & also, self.by_block)

    def in_order(
        self, first: int = 0, last: int | None = None, *, newest: bool = True
    ) -> QuerySet[EntryRow]:
        """Rows with ids from `first` to `last`, by an index in its order."""
        of_ids, of_blocks = Q(pk__gte=first), Q(block__gte=first >> 10)
        if last is not None:
            of_ids &= Q(pk__lte=last)
            of_blocks &= Q(block__lte=last >> 10)
        order = ["-block", "-pk"] if newest else ["block", "pk"]
        found = EntryRow.objects.filter(self.rows, of_ids)
        if not self.by_block:
            return found.order_by(order[1])
        return found.alias(block=BLOCK).filter(of_blocks).order_by(*order)


def named(given: Mapping[str, str]) -> RowFilter:
    """Filters EntryRow by the names in the audit page's filters (audit/filters.py); an unknown name
    matches nothing. One query."""
    wanted = [*_called(given), *_of_tools(given), *_of_contexts(given)]
    asked, by_block, by_id = Q(), False, False
    if not wanted:
        return RowFilter()
    names = Q()
    for one in wanted:
        names |= one.names
    rows = Name.objects.alias(head=Left("text", 500)).filter(names)
    known = [FoundName(*row) for row in rows.values_list(*FoundName._fields)]
    for one in wanted:
        numbers = [name.pk for name in known if one.fits(name)]
        asked &= Q(**{f"{one.column}__in": numbers})
        # What is seldom done, and who but agents does something, have indexes by id.
        by_id |= one.column == "actor" or (
            one.column == "action" and min(numbers, default=0) > COMMON_ACTIONS
        )
        by_block |= one.column not in ("action", "actor")
    return RowFilter(asked, by_block and not by_id)


def entries_of(actions: Collection[str]) -> QuerySet[Entry]:
    """Entries of actions that are none of every call's, in their order; found by the index."""
    names = Name.objects.alias(head=Left("text", 500)).filter(kind="action", head__in=actions)
    numbers = list(names.values_list("pk", flat=True))
    rows = EntryRow.objects.filter(action__in=numbers, action__gt=COMMON_ACTIONS)
    return Entry.objects.filter(pk__in=rows.values("pk")).order_by("pk")


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
    """Entries among these with a changed name, which filters may miss."""
    with connection.cursor() as cursor:
        cursor.execute(CHANGED, [list(ids)])
        return [pk for (pk,) in cursor.fetchall()]
