"""Which limits would apply to a call that nobody asks for: for pages and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from policies.decide import Subject
from policies.limits import usage
from policies.limits.compiled import CallParties, CompiledLimit, CounterKey, load
from policies.limits.costs import cost_of
from policies.limits.settling import find_settled
from policies.limits.usage import LimitUsage
from policies.models import Effect, Limit, LimitCounter


@dataclass(frozen=True, slots=True)
class LimitEvaluation:
    """One limit that covers the call. `usage`: None where it depends on the toolset, which nobody
    said. `is_over`: the call would be too much, as far as that is known."""

    limit: CompiledLimit
    usage: LimitUsage | None
    is_over: bool
    # The argument that says what it costs is not there, or no number.
    lacks_cost: bool = False

    @property
    def effect(self) -> Effect | None:
        """The limit's effect on the call; None where it leaves room, or only watches. No approval
        gives a call a cost."""
        if not self.is_over or self.limit.shadow:
            return None
        return Effect.DENY if self.lacks_cost else self.limit.effect


def evaluate(subject: Subject, parties: CallParties, arguments: bytes) -> list[LimitEvaluation]:
    rows = {row.pk: row for row in Limit.objects.in_use()}
    return [
        _evaluated(limit, rows[limit.id], parties, arguments)
        for limit in load().covering(subject)
        if limit.id in rows
    ]


def _evaluated(
    limit: CompiledLimit, row: Limit, parties: CallParties, arguments: bytes
) -> LimitEvaluation:
    cost = cost_of(limit, arguments)
    if Limit.Per.TOOLSET in limit.per:
        return LimitEvaluation(limit, None, is_over=cost is None, lacks_cost=cost is None)
    used = usage.of_counter(_counter(row, limit, limit.key(parties)))
    return LimitEvaluation(limit, used, is_over=_is_over(used, cost), lacks_cost=cost is None)


def _counter(row: Limit, limit: CompiledLimit, key: CounterKey) -> LimitCounter:
    """The counter; an unsaved one where nothing was used yet."""
    counter = find_settled(limit, key.key) or LimitCounter(limit=row, key=key.key)
    counter.limit, counter.label = row, key.label
    return counter


def _is_over(used: LimitUsage, cost: Decimal | None) -> bool:
    if used.limit.kind in Limit.BREAKERS:
        return used.until is not None
    return cost is None or used.used + cost > used.most
