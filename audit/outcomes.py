"""Outcomes of which the bars of the audit's histogram are stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from django.db import connection
from django.utils.translation import gettext_lazy as _

# From the bottom; `other` are steps before an outcome, and what is of no call.
OUTCOMES = {
    "succeeded": _("Succeeded"),
    "error": _("Errors"),
    "stopped": _("Blocked or stopped"),
    "invalid": _("Invalid request"),
    "other": _("Other entries"),
}
_ACTIONS = {
    "succeeded": ("succeeded",),
    "error": ("tool_error", "failed", "timed_out", "unknown"),
    "stopped": ("refused", "denied", "expired", "withdrawn", "superseded", "cancelled"),
    "invalid": ("invalid",),
}
OUTCOME_OF = {f"call.{state}": name for name, states in _ACTIONS.items() for state in states}
# So many entries of a bar are looked at where it has more than can be counted one by one.
SLICES, OF_SLICE = 4, 50

SAMPLE = """
    SELECT g.bar, a.text, g.n FROM (
        SELECT d.bar, r.action, count(*) AS n
        FROM unnest(%s::int[], %s::bigint[], %s::bigint[]) AS d (bar, low, high)
        CROSS JOIN LATERAL (
            SELECT action FROM audit_entryrow
            WHERE id >= d.low AND id < d.high ORDER BY id DESC LIMIT %s
        ) AS r GROUP BY 1, 2
    ) AS g JOIN audit_name a ON a.id = g.action
"""


def of_actions(counted: Mapping[str, int]) -> dict[str, int]:
    """By outcome, all of them in order."""
    found = dict.fromkeys(OUTCOMES, 0)
    for action, n in counted.items():
        found[OUTCOME_OF.get(action, "other")] += n
    return found


def estimated(firsts: Sequence[int], counts: Sequence[int]) -> list[dict[str, int]]:
    """The counts of bars, each between two of these ids, by outcome: as in some of its entries."""
    slices = [
        (bar, low, high)
        for bar, (first, after) in enumerate(pairwise(firsts))
        if counts[bar]
        for low, high in pairwise(
            [first + (after - first) * part // SLICES for part in range(SLICES + 1)]
        )
    ]
    seen: dict[int, dict[str, int]] = {}
    with connection.cursor() as cursor:
        columns = [list(column) for column in zip(*slices, strict=True)] if slices else [[]] * 3
        cursor.execute(SAMPLE, [*columns, OF_SLICE])
        for bar, action, n in cursor.fetchall():
            seen.setdefault(bar, {})[action] = n
    return [_scaled(of_actions(seen.get(bar, {})), count) for bar, count in enumerate(counts)]


def _scaled(seen: dict[str, int], count: int) -> dict[str, int]:
    """Whole entries that add up to the count."""
    every = sum(seen.values())
    scaled = {name: round(count * n / every) if every else 0 for name, n in seen.items()}
    largest = max(scaled, key=scaled.__getitem__) if every else "other"
    scaled[largest] += count - sum(scaled.values())
    return scaled
