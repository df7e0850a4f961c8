"""The use of a limit by one call."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Any, NamedTuple

from core import exact_json
from core.exact_json import Number
from core.strict_json import Ambiguous
from policies.limits.compiled import CompiledLimit
from policies.models import Limit

# Instead of a member's name: the bytes of the result.
SIZE = ("$size",)
# As far as budgets count; what is smaller is rounded up.
SMALLEST = Decimal("0.000001")
MOST = Decimal(10) ** 18


def cost_of(limit: CompiledLimit, arguments: bytes) -> Decimal | None:
    """Exactly as it was written. None: an argument has to say it, and does not."""
    if limit.kind == Limit.Kind.BYTES:
        return Decimal(len(arguments))
    if limit.cost is not None:
        return limit.cost
    if not limit.cost_path:
        return Decimal(1)
    return _amount(exact_json.loads(arguments), limit.cost_path)


class ResultCost(NamedTuple):
    """The member of a result that says what the call cost, for a limit; or SIZE."""

    limit_id: int
    path: tuple[str, ...]


def result_costs(limits: Iterable[CompiledLimit]) -> tuple[ResultCost, ...]:
    return tuple(ResultCost(one.id, one.result_path) for one in limits if one.result_path)


def costs_in(result: bytes, costs: Iterable[ResultCost]) -> dict[str, str]:
    """By the limit's id, as decimals are written; without those that the result does not say."""
    wanted = tuple(costs)
    is_read = any(one.path != SIZE for one in wanted)
    found = _parsed(result) if is_read else None
    amounts = (
        (one.limit_id, len(result) if one.path == SIZE else _amount(found, one.path))
        for one in wanted
    )
    return {str(limit_id): str(amount) for limit_id, amount in amounts if amount is not None}


def _parsed(result: bytes) -> Any:
    """Returns None for what two readers could read differently."""
    try:
        return exact_json.loads(result)
    except (Ambiguous, ValueError, RecursionError):
        return None


def _amount(document: Any, path: Iterable[str]) -> Decimal | None:
    found = document
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, Number):
        return None
    try:
        written = Decimal(found.text)
        fits = 0 <= written < MOST
        return written.quantize(SMALLEST, ROUND_CEILING) if fits else None
    except InvalidOperation:
        return None
