"""How one person decided within a stretch of time: votes that stand, and how long they took.

Read from the person's newest votes: a person decides seldom compared with what agents call.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.db import connection
from django.utils.translation import gettext_lazy as _

from calls.views.range_charts import ChartKind
from calls.views.range_figures import (
    OutcomeCounts,
    RangeFigures,
    StepDurations,
    TimeStep,
    add_counts,
)

LOOKED_AT = 20_000
DECISIONS = ChartKind(
    _("Decisions"),
    _("Decisions"),
    _("Time from request to vote"),
    {"approved": _("Approved"), "denied": _("Denied")},
)

# The time that a call was pending, until this vote. Each approval is found by its key.
VOTES = """
    WITH votes AS MATERIALIZED (
        SELECT approval_id, approve, at FROM approvals_vote
        WHERE person_id = %(person)s AND fallen_at IS NULL AND at >= %(first)s
        ORDER BY at DESC LIMIT %(looked_at)s
    ), decided AS (
        SELECT width_bucket(v.at, %(edges)s::timestamptz[]) AS step, v.approve,
               extract(epoch FROM v.at - a.asked_at)::float AS seconds
        FROM votes v CROSS JOIN LATERAL (
            SELECT asked_at FROM approvals_approval WHERE call_id = v.approval_id OFFSET 0
        ) AS a
    )
    SELECT step > 0, step, count(*) FILTER (WHERE approve), count(*) FILTER (WHERE NOT approve),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
           percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds)
    FROM decided GROUP BY GROUPING SETS ((step > 0), (step))
"""


def read_decisions(person: int, edges: Sequence[datetime], now: datetime) -> RangeFigures:
    """Figures whose outcomes are those of DECISIONS; without tops."""
    counts = {n: OutcomeCounts(0, dict.fromkeys(DECISIONS.outcomes, 0)) for n in range(len(edges))}
    durations: dict[int, StepDurations] = {}
    whole = StepDurations()
    looked_at = 0
    for is_since, step, approved, denied, p50, p95 in _read_votes(person, edges, now):
        if is_since:
            whole = StepDurations(p50, p95)
        elif step is not None:
            found = {"approved": approved, "denied": denied}
            counts[step] = OutcomeCounts(approved + denied, found)
            durations[step] = StepDurations(p50, p95)
            looked_at += approved + denied
    steps = [
        TimeStep(since, until, counts[n], durations.get(n, StepDurations()))
        for n, (since, until) in enumerate(pairwise(edges), start=1)
    ]
    return RangeFigures(
        steps=steps,
        total=add_counts((step.counts for step in steps), DECISIONS.outcomes),
        before=counts[0],
        durations=whole,
        tops={},
        is_sampled=looked_at == LOOKED_AT,
    )


def _read_votes(person: int, edges: Sequence[datetime], now: datetime) -> list[Any]:
    given: dict[str, Any] = {
        "person": person,
        # As much time before the first edge as has passed since.
        "first": edges[0] - (now - edges[0]),
        "edges": list(edges[:-1]),
        "looked_at": LOOKED_AT,
    }
    with connection.cursor() as cursor:
        cursor.execute(VOTES, given)
        return list(cursor.fetchall())
