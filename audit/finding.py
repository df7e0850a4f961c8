"""Finds entries by key, newest first, however large the record.

Rows are found by the numbers of names (audit/names.py), and shown as entries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from audit import steps
from audit.filters import Filters
from audit.models import Entry, EntryRow
from core.paging import SIZE, Page

# Given calls and a text, those whose arguments have it: audit knows no payloads (config/urls.py).
Containing = Callable[[Collection[UUID], str], set[UUID]]

# Ids follow the clock, but for transactions that took their time.
SLACK = 1000
# So many entries are looked through for a text at once, in pieces, and hardly longer than that.
# docs/en/contributing/record-design.md: why arguments have no index.
LOOK, CHUNK, LONGEST_S = 100_000, 4000, 1.5
# So many for the calls of one page.
LOOK_FOR_CALLS = 400


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which ids a stretch of time lies."""

    first: int
    last: int | None
    newest: int = 0
    began: datetime | None = None
    # Of the newest checkpoint, for people.
    size: int = 0
    signed_at: datetime | None = None


BOUNDS = """
    SELECT
        (SELECT max(id) FROM audit_entryrow),
        (SELECT at FROM audit_entryrow ORDER BY id LIMIT 1),
        audit_first_id(%(since)s),
        audit_first_id(%(until)s),
        c.size, c.at
    FROM (SELECT 1) one
    LEFT JOIN LATERAL (SELECT size, at FROM audit_checkpoint ORDER BY id DESC LIMIT 1) c ON true
"""


def bounds(since: datetime | None, until: datetime | None) -> Bounds:
    with connection.cursor() as cursor:
        cursor.execute(BOUNDS, {"since": since, "until": until})
        newest, began, first, last, size, signed_at = cursor.fetchone()
    if since and first is None:
        first = newest
    return Bounds(
        first=max(0, first - SLACK) if since and first else 0,
        last=last + SLACK if until and last is not None else None,
        newest=newest or 0,
        began=began,
        size=size or 0,
        signed_at=signed_at,
    )


@dataclass(frozen=True, slots=True)
class SearchResult:
    page: Page[Entry]
    # Of a search for a text that ended before the record did: from where to go on.
    looked_to: int | None = None
    # Of calls: the entries of the page and all their steps.
    with_steps: list[Entry] = field(default_factory=list)


def page_of(
    filters: Filters, asked: Mapping[str, str], within: Bounds, *, size: int = SIZE
) -> Page[Entry]:
    """Pages of entries, as in core.paging."""
    beyond, back = _id(asked.get("beyond", "")), _id(asked.get("back", ""))
    is_back = back is not None
    newest = filters.oldest_first == is_back
    bound = {"below" if newest else "above": back if is_back else beyond}
    nearest = ids(filters, within, **bound, most=size + 1, newest=newest)
    shown, is_more = nearest[:size], len(nearest) > size
    if is_back:
        shown.reverse()
        more_before, more_after = is_more, bool(shown)
    else:
        more_before, more_after = beyond is not None and bool(shown), is_more
    rows = entries(shown)
    return Page(
        rows,
        next=str(shown[-1]) if more_after and shown else "",
        previous=str(shown[0]) if more_before and shown else "",
    )


def calls_of(filters: Filters, asked: Mapping[str, str], within: Bounds) -> SearchResult:
    """Pages of the same by call: of each call its newest entry that fits. Looks through a bounded
    number of entries, so that a page may have fewer calls than others."""
    beyond, back = _id(asked.get("beyond", "")), _id(asked.get("back", ""))
    rows = _between(filters, within, below=beyond, above=back, newest=back is None)
    looked = _with_leaders(filters, rows, LOOK_FOR_CALLS)
    leading = [pk for pk, is_leader in looked if is_leader]
    shown, further = leading[:SIZE], ""
    if len(leading) > SIZE:
        further = str(shown[-1])
    elif len(looked) == LOOK_FOR_CALLS:
        further = str(looked[-1][0])
    with_steps = steps.load(shown)
    if back is not None:
        first = str(shown[0] if shown else back)
        page = Page(_picked(with_steps, shown[::-1]), next=first, previous=further)
    else:
        previous = str(shown[0] if shown else beyond) if beyond is not None else ""
        page = Page(_picked(with_steps, shown), next=further, previous=previous)
    return SearchResult(page, with_steps=with_steps)


def _with_leaders(filters: Filters, rows: QuerySet[EntryRow], most: int) -> list[tuple[int, bool]]:
    """The first of these rows, and of each whether it is of no call or its call's newest that fits.
    In the order of the rows."""
    fitting = EntryRow.objects.filter(filters.of_rows().rows, call_id=OuterRef("call_id"))
    # Two conditions, for the two indexes that know calls.
    newer = fitting.filter(pk__gt=OuterRef("pk"))
    beside, moves = (newer.filter(seq__isnull=is_beside) for is_beside in (True, False))
    told = rows.values_list("pk", Exists(beside), Exists(moves))[:most]
    return [(pk, not (has_beside or has_moves)) for pk, has_beside, has_moves in told]


def _picked(loaded: list[Entry], wanted: list[int]) -> list[Entry]:
    by_id = {entry.pk: entry for entry in loaded}
    return [by_id[pk] for pk in wanted]


def searched(
    filters: Filters, asked: Mapping[str, str], within: Bounds, has: Containing
) -> SearchResult:
    """The same, of entries whose call's arguments have the text: looks through LOOK at a time, or
    as many as LONGEST_S is enough for."""
    fitting: list[int] = []
    looked_to, is_last = None, True
    for chunk in _chunks(filters, within, _id(asked.get("beyond", ""))):
        fitting += _with_text(filters, chunk, has)
        looked_to, is_last = chunk[-1][0], len(chunk) < CHUNK
        if len(fitting) >= SIZE:
            break
    shown = fitting[:SIZE]
    if len(shown) == SIZE:
        looked_to = shown[-1]
    ended = is_last and len(fitting) <= SIZE
    page = Page(entries(shown), next="" if ended else str(looked_to))
    with_steps = steps.load(shown) if filters.by_call else []
    return SearchResult(page, None if ended else looked_to, with_steps)


def _chunks(
    filters: Filters, within: Bounds, below: int | None
) -> Iterator[list[tuple[int, UUID | None]]]:
    """Entries that fit but for the text, newest first, with their calls."""
    began = time.monotonic()
    for _ in range(0, LOOK, CHUNK):
        rows = _between(filters, within, below=below)
        chunk = list(rows.values_list("pk", "call_id")[:CHUNK])
        if chunk:
            yield chunk
        if len(chunk) < CHUNK or time.monotonic() - began > LONGEST_S:
            return
        below = chunk[-1][0]


def _with_text(
    filters: Filters, chunk: list[tuple[int, UUID | None]], has: Containing
) -> list[int]:
    """The entries of these whose call has the text; by call, only the newest one of each."""
    calls = has({call_id for _pk, call_id in chunk if call_id}, filters.text)
    found = [pk for pk, call_id in chunk if call_id in calls]
    if not filters.by_call:
        return found
    rows = EntryRow.objects.filter(pk__in=found).order_by("-pk")
    return [pk for pk, is_leader in _with_leaders(filters, rows, len(found)) if is_leader]


def ids(
    filters: Filters,
    within: Bounds,
    *,
    below: int | None = None,
    above: int | None = None,
    most: int,
    newest: bool = True,
) -> list[int]:
    """Ids of the matching entries, newest first (or oldest first), between two ids."""
    rows = _between(filters, within, below=below, above=above, newest=newest)
    return list(rows.values_list("pk", flat=True)[:most])


def _between(
    filters: Filters,
    within: Bounds,
    *,
    below: int | None = None,
    above: int | None = None,
    newest: bool = True,
) -> QuerySet[EntryRow]:
    first = max(within.first, 0 if above is None else above + 1)
    lasts = within.last, None if below is None else below - 1
    last = min((last for last in lasts if last is not None), default=None)
    return filters.of_rows().in_order(first, last, newest=newest)


def entries(wanted: list[int]) -> list[Entry]:
    """In the order of the ids."""
    by_id = Entry.objects.in_bulk(wanted)
    return [by_id[pk] for pk in wanted if pk in by_id]


def time_of(entry_id: int | None) -> datetime | None:
    if entry_id is None:
        return None
    return EntryRow.objects.values_list("at", flat=True).get(pk=entry_id)


def every(
    filters: Filters, within: Bounds, *, above: int = -1, last: int, size: int = 1000
) -> Iterator[list[int]]:
    """Ids of all that fits, oldest first, after one id and up to another."""
    while wanted := ids(filters, within, above=above, below=last + 1, most=size, newest=False):
        above = wanted[-1]
        yield wanted


def _id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
