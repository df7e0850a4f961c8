"""Calls within a stretch of time: how many, how they ended, how long they took, and whose.

Counts are exact and read from indexes alone: ids sort by time, and the states of calls that did not
succeed have an index of their own. Durations and shares are read from a bounded number of calls of
each step, spread over it; of a step with fewer calls, from all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from django.db import connection
from django.utils.translation import gettext_lazy as _

from calls.measuring import SECONDS
from calls.record.states import LIVE, State
from calls.views.usage_figures import WRONG
from core.ids import first_id

# So many calls of a step are looked at; where it has more, as many of each of its slices.
LOOKED_AT, SLICES = 200, 8
TOP = 5

# What a bar is stacked of, from the bottom. An unresolved call stays an error when it is resolved.
OUTCOMES: dict[str, tuple[Any, tuple[State, ...]]] = {
    "succeeded": (_("Succeeded"), (State.SUCCEEDED,)),
    "error": (_("Errors"), (*WRONG, State.RESOLVED)),
    "stopped": (
        _("Blocked or stopped"),
        (
            State.REFUSED,
            State.DENIED,
            State.EXPIRED,
            State.WITHDRAWN,
            State.SUPERSEDED,
            State.CANCELLED,
        ),
    ),
    "invalid": (_("Invalid request"), (State.INVALID,)),
    "live": (_("Not ended yet"), LIVE),
}
OUTCOME_OF = {state.value: name for name, (_label, states) in OUTCOMES.items() for state in states}
# As literals: the planner compares them with the condition of the index.
_UNSUCCESSFUL = ", ".join(f"'{state}'" for state in State if state != State.SUCCEEDED)
_ERRORS = ", ".join(f"'{state}'" for state in OUTCOMES["error"][1])

# By step, where 0 is the range before: all calls, and those in each state but succeeded.
COUNTS = f"""
    SELECT d.place - 1, '', c.n
    FROM unnest(%(lows)s::uuid[], %(highs)s::uuid[]) WITH ORDINALITY AS d (low, high, place)
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM calls_call WHERE id >= d.low AND id < d.high
    ) AS c
    UNION ALL
    SELECT d.place - 1, s.state, c.n
    FROM unnest(%(lows)s::uuid[], %(highs)s::uuid[]) WITH ORDINALITY AS d (low, high, place)
    CROSS JOIN unnest(ARRAY[{_UNSUCCESSFUL}]) AS s (state)
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM calls_call
        WHERE state = s.state AND state <> 'succeeded' AND id >= d.low AND id < d.high
    ) AS c
    WHERE c.n > 0
"""

# A call of a step with more of them than are looked at stands for several.
SAMPLE = f"""
    WITH looked_at AS MATERIALIZED (
        SELECT d.step, c.agent_id, c.tool_id, c.server_id, c.seconds,
               c.state IN ({_ERRORS}) AS wrong, c.state IN ('succeeded', {_ERRORS}) AS ended,
               d.n::float / count(*) OVER (PARTITION BY d.step) AS weight
        FROM unnest(
            %(steps)s::int[], %(counts)s::int[], %(most)s::int[], %(lows)s::uuid[],
            %(highs)s::uuid[]
        ) AS d (step, n, most, low, high)
        CROSS JOIN LATERAL (
            SELECT agent_id, tool_id, server_id, state, {SECONDS} AS seconds
            FROM calls_call WHERE id >= d.low AND id < d.high ORDER BY id DESC LIMIT d.most
        ) AS c
    ), grouped AS (
        SELECT CASE WHEN GROUPING(step) = 0 THEN 'step' WHEN GROUPING(agent_id) = 0 THEN 'agent'
                    WHEN GROUPING(tool_id) = 0 THEN 'tool'
                    WHEN GROUPING(server_id) = 0 THEN 'server' ELSE 'all' END AS kind,
               COALESCE(step, agent_id, tool_id, server_id) AS key,
               sum(weight) AS n, COALESCE(sum(weight) FILTER (WHERE wrong), 0) AS wrong,
               COALESCE(sum(weight) FILTER (WHERE ended), 0) AS ended,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS p50,
               percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95
        FROM looked_at
        GROUP BY GROUPING SETS ((), (step), (agent_id), (tool_id), (server_id))
    ), ranked AS (
        SELECT *, row_number() OVER (PARTITION BY kind ORDER BY n DESC, key) AS place FROM grouped
        WHERE key IS NOT NULL OR kind = 'all'
    )
    SELECT kind, key, wrong, ended, p50, p95 FROM ranked
    WHERE kind IN ('all', 'step') OR place <= %(top)s
"""

# Exact, whatever was looked at.
NAMED = """
    SELECT t.kind, t.key, COALESCE(a.name, o.exposed_name, s.slug), CASE t.kind
        WHEN 'agent' THEN (
            SELECT count(*) FROM calls_call c
            WHERE c.agent_id = t.key AND c.id >= %(low)s AND c.id < %(high)s)
        WHEN 'tool' THEN (
            SELECT count(*) FROM calls_call c
            WHERE c.tool_id = t.key AND c.id >= %(low)s AND c.id < %(high)s)
        ELSE (
            SELECT sum(x.n) FROM registry_tool y CROSS JOIN LATERAL (
                SELECT count(*) AS n FROM calls_call c
                WHERE c.tool_id = y.id AND c.id >= %(low)s AND c.id < %(high)s
            ) AS x WHERE y.server_id = t.key)
        END
    FROM unnest(%(kinds)s::text[], %(keys)s::bigint[]) AS t (kind, key)
    LEFT JOIN accounts_agent a ON t.kind = 'agent' AND a.id = t.key
    LEFT JOIN registry_tool o ON t.kind = 'tool' AND o.id = t.key
    LEFT JOIN registry_server s ON t.kind = 'server' AND s.id = t.key
"""


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """Calls by what became of them (OUTCOMES)."""

    calls: int = 0
    by_outcome: dict[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        return self.by_outcome.get("error", 0)

    @property
    def error_percent(self) -> float | None:
        """The share of errors among calls that ended; None where none did."""
        return 100 * self.errors / self.ended if self.ended else None

    @property
    def ended(self) -> int:
        """Calls that ran to an end: with a result or an error."""
        return self.by_outcome.get("succeeded", 0) + self.errors


class StepDurations(NamedTuple):
    """Seconds; None where nothing was sent."""

    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True)
class TimeStep:
    since: datetime
    until: datetime
    counts: OutcomeCounts
    durations: StepDurations


@dataclass(frozen=True, slots=True)
class TopCaller:
    """An agent, a tool or a server, by its calls; the share is of those that ended."""

    name: str
    calls: int
    ended: int
    error_percent: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class RangeFigures:
    steps: list[TimeStep]
    total: OutcomeCounts
    before: OutcomeCounts
    durations: StepDurations
    tops: dict[str, list[TopCaller]]
    # Whether some step has more calls than were looked at.
    is_sampled: bool

    @property
    def change_size(self) -> float:
        return abs(self.change_percent or 0)

    @property
    def change_percent(self) -> float | None:
        """Against as long a time before; None where there is nothing to compare with."""
        if not self.before.calls:
            return None
        return 100 * (self.total.calls - self.before.calls) / self.before.calls


def read_figures(edges: Sequence[datetime], now: datetime) -> RangeFigures:
    """Counts and durations of all calls since the first edge; `now` lies in the last step."""
    counts = _counts(edges, now)
    sample = _sample(edges, [counts[n].calls for n in range(1, len(edges))])
    of_steps = {key: _durations(row) for kind, key, *row in sample if kind == "step"}
    steps = [
        TimeStep(since, until, counts[n], of_steps.get(n, StepDurations()))
        for n, (since, until) in enumerate(pairwise(edges), start=1)
    ]
    whole = [_durations(row) for kind, _key, *row in sample if kind == "all"]
    return RangeFigures(
        steps=steps,
        total=add_counts(step.counts for step in steps),
        before=counts[0],
        durations=whole[0] if whole else StepDurations(),
        tops=_tops(sample, edges),
        is_sampled=any(step.counts.calls > LOOKED_AT for step in steps),
    )


def _counts(edges: Sequence[datetime], now: datetime) -> dict[int, OutcomeCounts]:
    """By step from 1; 0 is as much time before the first as has passed since."""
    before = edges[0] - (now - edges[0])
    bounds = [first_id(before), *map(first_id, edges)]
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, {"lows": bounds[:-1], "highs": bounds[1:]})
        rows = cursor.fetchall()
    return {n: _of_step([row[1:] for row in rows if row[0] == n]) for n in range(len(edges))}


def _of_step(rows: Iterable[tuple[str, int]]) -> OutcomeCounts:
    by_state = dict(rows)
    calls = by_state.pop("", 0)
    found = dict.fromkeys(OUTCOMES, 0)
    for state, n in by_state.items():
        found[OUTCOME_OF[state]] += n
    # What came in between two looks at the table is no call less than none.
    found["succeeded"] = max(0, calls - sum(by_state.values()))
    return OutcomeCounts(calls, found)


def add_counts(
    counts: Iterable[OutcomeCounts], outcomes: Iterable[str] = tuple(OUTCOMES)
) -> OutcomeCounts:
    every = list(counts)
    found = {name: sum(one.by_outcome[name] for one in every) for name in outcomes}
    return OutcomeCounts(sum(one.calls for one in every), found)


def _sample(edges: Sequence[datetime], counts: Sequence[int]) -> list[Any]:
    slices = [
        one
        for n, (since, until) in enumerate(pairwise(edges), start=1)
        if counts[n - 1]
        for one in slices_of(n, counts[n - 1], since, until, LOOKED_AT)
    ]
    names = ("steps", "counts", "most", "lows", "highs")
    columns = zip(*slices, strict=True) if slices else ([] for _name in names)
    given: dict[str, Any] = {
        name: list(column) for name, column in zip(names, columns, strict=True)
    }
    with connection.cursor() as cursor:
        cursor.execute(SAMPLE, {**given, "top": TOP})
        return list(cursor.fetchall())


def slices_of(
    n: int, calls: int, since: datetime, until: datetime, looked_at: int
) -> Iterator[tuple[Any, ...]]:
    """One for a step of few calls: all of them are looked at, however they lie in it."""
    of = SLICES if calls > looked_at else 1
    cuts = [first_id(since + (until - since) * k / of) for k in range(of + 1)]
    for low, high in pairwise(cuts):
        yield n, calls, looked_at // of, low, high


def _durations(row: Sequence[Any]) -> StepDurations:
    return StepDurations(*row[-2:])


def _tops(sample: Iterable[Any], edges: Sequence[datetime]) -> dict[str, list[TopCaller]]:
    found: dict[str, list[TopCaller]] = {"tool": [], "agent": [], "server": []}
    looked_at = {(kind, key): row for kind, key, *row in sample if kind in found}
    if not looked_at:
        return found
    given: dict[str, Any] = {
        "kinds": [kind for kind, _key in looked_at],
        "keys": [key for _kind, key in looked_at],
        "low": first_id(edges[0]),
        "high": first_id(edges[-1]),
    }
    with connection.cursor() as cursor:
        cursor.execute(NAMED, given)
        for kind, key, name, calls in cursor.fetchall():
            wrong, ended, _p50, p95 = looked_at[kind, key]
            share = 100 * wrong / ended if ended else None
            found[kind].append(TopCaller(name, int(calls or 0), round(ended), share, p95))
    return {
        kind: sorted(callers, key=lambda one: (-one.calls, one.name))
        for kind, callers in found.items()
    }
