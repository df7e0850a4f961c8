"""The use of a limit by one call."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Any

from core import exact_json
from core.exact_json import Number
from policies.limits.compiled import CompiledLimit
from policies.models import Limit

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
    found = exact_json.loads(arguments)
    for name in limit.cost_path:
        found = found.get(name) if isinstance(found, dict) else None
    return _amount(found)


def _amount(found: Any) -> Decimal | None:
    if not isinstance(found, Number):
        return None
    try:
        written = Decimal(found.text)
        fits = 0 <= written < MOST
        return written.quantize(SMALLEST, ROUND_CEILING) if fits else None
    except InvalidOperation:
        return None
