"""How many entries when: bars that are links to their own stretch of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from audit.filters import Filters
from audit.finding import Bounds
from audit.leaves import PLACE, SIZE
from audit.models import EntryRow

STEPS = [
    *(timedelta(minutes=n) for n in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=n) for n in (1, 2, 3, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 7, 14, 30, 91, 365, 3650)),
]
BARS = 40
# Beyond so many, the picture shows the newest and says so.
COUNTED = 50_000
WIDTH, HEIGHT = 960, 96


@dataclass(frozen=True, slots=True)
class TimeBar:
    since: datetime
    until: datetime
    count: int
    x: float
    y: float
    width: float
    height: float
    address: str


@dataclass(frozen=True, slots=True)
class Histogram:
    bars: list[TimeBar]
    highest: int
    cut: bool
    width: int = WIDTH
    height: int = HEIGHT


def histogram(filters: Filters, within: Bounds) -> Histogram | None:
    """None while there are none to draw."""
    since, until = _span(filters, within)
    if since is None or until is None or since >= until:
        return None
    edges = list(_edges(since, until, filters))
    few = within.newest - within.first < COUNTED
    counts, cut = _each(filters, edges) if few or filters.narrow else (_all(edges), False)
    highest = max(counts, default=0)
    return Histogram(list(_bars(filters, edges, counts)), highest, cut) if highest else None


def _span(filters: Filters, within: Bounds) -> tuple[datetime | None, datetime | None]:
    since, until = filters.since(), filters.until() or filters.now
    # A record that has just begun is no wall of one bar.
    since = since or (within.began and min(within.began, until - timedelta(hours=1)))
    return since, max(until, since + timedelta(minutes=1)) if since else until


def _edges(since: datetime, until: datetime, filters: Filters) -> Iterator[datetime]:
    """Round times of the person's own clock."""
    step = next((step for step in STEPS if (until - since) / step <= BARS), STEPS[-1])
    local = since.astimezone(filters.zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    edge = midnight + (local - midnight) // step * step
    while edge < until:
        yield edge
        edge = edge + step
    yield edge


FIRSTS = f"""
    SELECT p.index, ({SIZE})
    FROM unnest(%s::timestamptz[]) WITH ORDINALITY AS given(edge, n)
    CROSS JOIN LATERAL (SELECT audit_first_id(edge) AS id) f
    LEFT JOIN LATERAL ({PLACE}) p ON true
    ORDER BY n
"""


def _all(edges: list[datetime]) -> list[int]:
    """Counts by leaf numbers, which have no gaps."""
    with connection.cursor() as cursor:
        cursor.execute(FIRSTS, [edges])
        rows = cursor.fetchall()
    # What is not sealed yet comes after all that is.
    indexes = [int(end or 0) if index is None else int(index) for index, end in rows]
    return [max(0, after - before) for before, after in pairwise(indexes)]


def _each(filters: Filters, edges: list[datetime]) -> tuple[list[int], bool]:
    rows = filters.without_text().of_rows().in_order()
    try:
        counts = _counted(rows.values("at")[:COUNTED], edges)
    except EmptyResultSet:
        counts = {}
    return [counts.get(n, 0) for n in range(1, len(edges))], sum(counts.values()) >= COUNTED


def _counted(newest: QuerySet[EntryRow, Any], edges: list[datetime]) -> dict[int, int]:
    sql, parameters = newest.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT width_bucket(at, %s::timestamptz[]), count(*) FROM ({sql}) n GROUP BY 1",
            [edges, *parameters],
        )
        return dict(cursor.fetchall())


def _bars(filters: Filters, edges: list[datetime], counts: list[int]) -> Iterator[TimeBar]:
    highest = max(counts)
    width = WIDTH / len(counts)
    for n, ((since, until), count) in enumerate(zip(pairwise(edges), counts, strict=True)):
        # One entry is to be seen, beside a thousand too.
        height = max(3.0, HEIGHT * count / highest) if count else 0.0
        yield TimeBar(
            since,
            until,
            count,
            round(n * width + 1, 1),
            round(HEIGHT - height, 1),
            round(width - 2, 1),
            round(height, 1),
            _address(filters, since, until),
        )


def _address(filters: Filters, since: datetime, until: datetime) -> str:
    given = {name: value for name, value in filters.given.items() if name != "range"}
    shown = {"since": f"{since:%Y-%m-%dT%H:%M}", "until": f"{until:%Y-%m-%dT%H:%M}"}
    return replace(filters, given={**given, **shown}).address
