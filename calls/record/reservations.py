"""Reservations of exact limits, written in the commit that opens the call.

Budgets, calls at the same time, and loop breakers. All that it needs, or nothing: then OPEN
(calls/record/transitions.py) opens nothing either. What is reserved is given back by the record
itself: whoever reserves next looks how the calls before ended (calls/sql/limits.sql).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from core.journal import Statement

RESERVE = Statement(
    "reserve",
    "SELECT id, is_reserved, over FROM calls_reserve(%s::json)",
    # After the keys, whose calls reserve nothing that they do not open; before grants' uses.
    order=-1,
)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation of one limit. `forced`: beyond the limit too, since people answer for the call,
    or since the limit is monitor only. `alike`: what makes two calls the same, for loop breakers.
    """

    limit_id: int
    key: str
    label: str
    agent_id: int | None
    person_id: int | None
    kind: str
    period: str
    # As decimals are written: exact.
    most: str
    amount: str
    hold_s: float
    alike: str
    forced: bool


def line(call_id: UUID, uses: Sequence[Reservation], once: str | None) -> dict[str, Any]:
    return {"id": call_id, "once": once, "uses": uses}


@dataclass(frozen=True, slots=True)
class OverLimit:
    """`wait_s`: None where nobody can say when there will be room."""

    limit_id: int
    wait_s: float | None
    forced: bool


def over(found: Any) -> list[OverLimit]:
    return [OverLimit(one["limit"], one["wait_s"], one["forced"]) for one in found]
