"""How many entries when: bars that are links to their own stretch of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from audit.filters import Filters
from audit.finding import Bounds
from audit.leaves import PLACE, SIZE
from audit.models import EntryRow
from audit.outcomes import OUTCOMES, estimated, of_actions

STEPS = [
    *(timedelta(minutes=n) for n in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=n) for n in (1, 2, 3, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 7, 14, 30, 91, 365, 3650)),
]
BARS = 40
# Beyond so many, the picture shows the newest and says so.
COUNTED = 50_000
WIDTH, HEIGHT = 960, 96


class BarPart(NamedTuple):
    name: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class TimeBar:
    since: datetime
    until: datetime
    count: int
    x: float
    width: float
    parts: list[BarPart]
    # By their labels.
    outcomes: list[tuple[Any, int]]
    address: str


@dataclass(frozen=True, slots=True)
class Histogram:
    bars: list[TimeBar]
    highest: int
    cut: bool
    # Of outcomes: they are told by some of each bar's entries.
    is_sampled: bool = False
    legend: list[tuple[str, Any]] = field(default_factory=lambda: list(OUTCOMES.items()))
    width: int = WIDTH
    height: int = HEIGHT


def histogram(filters: Filters, within: Bounds) -> Histogram | None:
    """None while there are none to draw."""
    since, until = _span(filters, within)
    if since is None or until is None or since >= until:
        return None
    edges = list(_edges(since, until, filters))
    few = within.newest - within.first < COUNTED
    one_by_one = few or filters.narrow
    counts, cut = _each(filters, edges) if one_by_one else (_all(edges, within), False)
    highest = max((sum(count.values()) for count in counts), default=0)
    if not highest:
        return None
    bars = list(_bars(filters, edges, counts, highest))
    return Histogram(bars, highest, cut, is_sampled=not one_by_one)


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
    SELECT f.id, p.index, ({SIZE})
    FROM unnest(%s::timestamptz[]) WITH ORDINALITY AS given(edge, n)
    CROSS JOIN LATERAL (SELECT audit_first_id(edge) AS id) f
    LEFT JOIN LATERAL ({PLACE}) p ON true
    ORDER BY n
"""


def _all(edges: list[datetime], within: Bounds) -> list[dict[str, int]]:
    """Counts by leaf numbers, which have no gaps; outcomes as in some of a bar's entries."""
    with connection.cursor() as cursor:
        cursor.execute(FIRSTS, [edges])
        rows = cursor.fetchall()
    # What is not sealed yet comes after all that is.
    indexes = [int(end or 0) if index is None else int(index) for _id, index, end in rows]
    counts = [max(0, after - before) for before, after in pairwise(indexes)]
    return estimated([within.newest + 1 if pk is None else pk for pk, _index, _end in rows], counts)


def _each(filters: Filters, edges: list[datetime]) -> tuple[list[dict[str, int]], bool]:
    rows = filters.without_text().of_rows().in_order()
    try:
        counted = _counted(rows.values("at", "action")[:COUNTED], edges)
    except EmptyResultSet:
        counted = {}
    every = sum(sum(actions.values()) for actions in counted.values())
    return [of_actions(counted.get(n, {})) for n in range(1, len(edges))], every >= COUNTED


COUNTS = """
    SELECT g.bar, a.text, g.n FROM (
        SELECT width_bucket(n.at, %s::timestamptz[]) AS bar, n.action, count(*) AS n
        FROM ({newest}) n GROUP BY 1, 2
    ) AS g JOIN audit_name a ON a.id = g.action
"""


def _counted(newest: QuerySet[EntryRow, Any], edges: list[datetime]) -> dict[int, dict[str, int]]:
    """By bar and action."""
    sql, parameters = newest.query.sql_with_params()
    found: dict[int, dict[str, int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(COUNTS.replace("{newest}", sql), [edges, *parameters])
        for bar, action, n in cursor.fetchall():
            found.setdefault(bar, {})[action] = n
    return found


def _bars(
    filters: Filters, edges: list[datetime], counts: list[dict[str, int]], highest: int
) -> Iterator[TimeBar]:
    width = WIDTH / len(counts)
    for n, ((since, until), count) in enumerate(zip(pairwise(edges), counts, strict=True)):
        yield TimeBar(
            since,
            until,
            sum(count.values()),
            round(n * width + 1, 1),
            round(width - 2, 1),
            list(_parts(count, highest)),
            [(OUTCOMES[name], of_it) for name, of_it in count.items()],
            _address(filters, since, until),
        )


def _parts(count: dict[str, int], highest: int) -> Iterator[BarPart]:
    bottom = float(HEIGHT)
    for name, n in count.items():
        if n:
            # One entry is to be seen, beside a thousand too.
            height = max(3.0, HEIGHT * n / highest)
            bottom = max(0.0, bottom - height)
            yield BarPart(name, round(bottom, 1), round(height, 1))


def _address(filters: Filters, since: datetime, until: datetime) -> str:
    given = {name: value for name, value in filters.given.items() if name != "range"}
    shown = {"since": f"{since:%Y-%m-%dT%H:%M}", "until": f"{until:%Y-%m-%dT%H:%M}"}
    return replace(filters, given={**given, **shown}).address
