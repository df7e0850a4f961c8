"""Figures of the calls of one agent, server or rule within a stretch of time.

The calls of each step are counted by an index (of a server: of each of its tools). How they ended
and how long they took is read from a bounded number of calls of each step, spread over it; of a
step with fewer calls, from all of them. No index knows rules: their calls are those among the ones
of everybody that are looked at, and each stands for several where a step has more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from calls.measuring import SECONDS
from calls.views.range_figures import (
    OUTCOME_OF,
    OUTCOMES,
    OutcomeCounts,
    RangeFigures,
    StepDurations,
    TimeStep,
    add_counts,
    slices_of,
)
from core.ids import first_id


class Narrowing(NamedTuple):
    """Which calls. `looked_at`: of so many of each step; `calls` and `counting`: which of those
    between the ids d.low and d.high, and how many."""

    looked_at: int
    calls: str
    counting: str
    condition: str = "true"


def _by_column(column: str) -> Narrowing:
    calls = f"FROM calls_call c WHERE c.{column} = %(key)s AND c.id >= d.low AND c.id < d.high"
    return Narrowing(200, calls, f"SELECT count(*) AS n {calls}")


_OF_TOOLS = """
    FROM registry_tool t CROSS JOIN LATERAL (
        SELECT {} FROM calls_call c
        WHERE c.tool_id = t.id AND c.id >= d.low AND c.id < d.high {}
    ) AS c WHERE t.server_id = %(key)s
"""
_EVERYBODYS = "FROM calls_call c WHERE c.id >= d.low AND c.id < d.high"
NARROWINGS = {
    "agent": _by_column("agent_id"),
    "server": Narrowing(
        200,
        _OF_TOOLS.format("c.*", "ORDER BY c.id DESC LIMIT d.most"),
        "SELECT COALESCE(sum(c.n), 0) AS n " + _OF_TOOLS.format("count(*) AS n", ""),
    ),
    "rule": Narrowing(
        1_000, _EVERYBODYS, f"SELECT count(*) AS n {_EVERYBODYS}", "looked_at.rule_id = %(key)s"
    ),
}

COUNTS = """
    SELECT c.n FROM unnest(%(lows)s::uuid[], %(highs)s::uuid[])
        WITH ORDINALITY AS d (low, high, place)
    CROSS JOIN LATERAL ({count}) AS c ORDER BY d.place
"""
SAMPLE = f"""
    WITH looked_at AS MATERIALIZED (
        SELECT d.step, c.state, c.rule_id, c.seconds,
               d.n::float / count(*) OVER (PARTITION BY d.step) AS weight
        FROM unnest(
            %(steps)s::int[], %(counts)s::bigint[], %(most)s::int[], %(lows)s::uuid[],
            %(highs)s::uuid[]
        ) AS d (step, n, most, low, high)
        CROSS JOIN LATERAL (
            SELECT c.id, c.state, c.rule_id, {SECONDS} AS seconds
            {{calls}} ORDER BY c.id DESC LIMIT d.most
        ) AS c
    )
    SELECT step > 0, step, CASE WHEN GROUPING(state) = 0 THEN state ELSE '' END, sum(weight),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
           percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds)
    FROM looked_at WHERE {{condition}}
    GROUP BY GROUPING SETS ((step > 0), (step), (step, state))
"""


def read_narrowed(kind: str, key: int, edges: Sequence[datetime], now: datetime) -> RangeFigures:
    """Figures like those of `read_figures`, of one agent, server or rule (NARROWINGS)."""
    narrowing = NARROWINGS[kind]
    # Step 0 is as much time before the first as has passed since.
    bounds = [edges[0] - (now - edges[0]), *edges]
    counts = _counts(narrowing, key, [first_id(bound) for bound in bounds])
    outcomes: dict[int, dict[str, float]] = {}
    durations: dict[int, StepDurations] = {}
    whole = StepDurations()
    for is_since, step, state, calls, p50, p95 in _sample(narrowing, key, bounds, counts):
        if is_since:
            whole = StepDurations(p50, p95)
        elif state:
            of_step = outcomes.setdefault(step, dict.fromkeys(OUTCOMES, 0.0))
            of_step[OUTCOME_OF[state]] += calls
        elif step is not None:
            durations[step] = StepDurations(p50, p95)
    found = [_rounded(outcomes.get(n, {})) for n in range(len(edges))]
    steps = [
        TimeStep(since, until, found[n], durations.get(n, StepDurations()))
        for n, (since, until) in enumerate(pairwise(edges), start=1)
    ]
    return RangeFigures(
        steps=steps,
        total=add_counts(step.counts for step in steps),
        before=found[0],
        durations=whole,
        tops={},
        is_sampled=any(count > narrowing.looked_at for count in counts[1:]),
    )


def _counts(narrowing: Narrowing, key: int, bounds: Sequence[UUID]) -> list[int]:
    given: dict[str, Any] = {"lows": bounds[:-1], "highs": bounds[1:], "key": key}
    with connection.cursor() as cursor:
        cursor.execute(COUNTS.format(count=narrowing.counting), given)
        return [int(n) for (n,) in cursor.fetchall()]


def _sample(
    narrowing: Narrowing, key: int, bounds: Sequence[datetime], counts: Sequence[int]
) -> list[Any]:
    slices = [
        one
        for n, (since, until) in enumerate(pairwise(bounds))
        if counts[n]
        for one in slices_of(n, counts[n], since, until, narrowing.looked_at)
    ]
    names = ("steps", "counts", "most", "lows", "highs")
    columns = zip(*slices, strict=True) if slices else ([] for _name in names)
    given: dict[str, Any] = {name: list(c) for name, c in zip(names, columns, strict=True)}
    with connection.cursor() as cursor:
        sample = SAMPLE.format(calls=narrowing.calls, condition=narrowing.condition)
        cursor.execute(sample, {**given, "key": key})
        return list(cursor.fetchall())


def _rounded(calls: Mapping[str, float]) -> OutcomeCounts:
    """Whole calls that add up to what they were counted."""
    rounded = {name: round(calls.get(name, 0)) for name in OUTCOMES}
    largest = max(rounded, key=rounded.__getitem__)
    rounded[largest] += round(sum(calls.values())) - sum(rounded.values())
    return OutcomeCounts(sum(rounded.values()), rounded)
