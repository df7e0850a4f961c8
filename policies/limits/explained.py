"""Which limits would apply to a call that nobody asks for: for pages and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.utils import timezone

from policies.decide import Subject
from policies.limits import usage
from policies.limits.compiled import (
    CallParties,
    CompiledLimit,
    CounterKey,
    LimitBook,
    LimitReached,
    load,
)
from policies.limits.costs import cost_of
from policies.limits.settling import find_settled
from policies.limits.usage import LimitUsage
from policies.models import Effect, Limit, LimitCounter


@dataclass(frozen=True, slots=True)
class LimitEvaluation:
    """One limit that covers the call. `usage`: None where it depends on the toolset, which nobody
    said. `is_over`: the call would be too much, as far as that is known."""

    limit: CompiledLimit
    key: CounterKey
    usage: LimitUsage | None
    # None: the argument that says what it costs is not there, or no number.
    cost: Decimal | None
    is_over: bool

    @property
    def lacks_cost(self) -> bool:
        return self.cost is None

    @property
    def reached(self) -> LimitReached:
        """The limit as the call would meet it, were it made now."""
        why = self.limit.lacks_cost if self.lacks_cost else ""
        return LimitReached(self.limit, self.key, self._wait_s, why)

    @property
    def _wait_s(self) -> float | None:
        used, cost = self.usage, self.cost
        if used is None or cost is None:
            return None
        if (ends_at := used.until or used.free_at) is None:
            return None
        wait_s = (ends_at - timezone.now()).total_seconds()
        if used.limit.kind in Limit.BREAKERS:
            return wait_s
        if cost > used.most:
            return None
        # A rate refills evenly, a budget as its window ends.
        refills = used.limit.kind in Limit.RATES
        return wait_s - float(used.most - cost) * self.limit.emission_s if refills else wait_s

    @property
    def effect(self) -> Effect | None:
        """The limit's effect on the call; None where it leaves room, only watches or only warns.
        No approval gives a call a cost."""
        if not self.is_over or self.limit.lets_run:
            return None
        return Effect.DENY if self.lacks_cost else Effect(self.limit.effect.value)


def evaluate(
    subject: Subject, parties: CallParties, arguments: bytes, book: LimitBook | None = None
) -> list[LimitEvaluation]:
    rows = {row.pk: row for row in Limit.objects.in_use()}
    return [
        _evaluated(limit, rows[limit.id], parties, arguments)
        for limit in (book or load()).covering(subject)
        if limit.id in rows
    ]


def _evaluated(
    limit: CompiledLimit, row: Limit, parties: CallParties, arguments: bytes
) -> LimitEvaluation:
    cost, key = cost_of(limit, arguments), limit.key(parties)
    if Limit.Per.TOOLSET in limit.per and not parties.toolset:
        return LimitEvaluation(limit, key, None, cost, is_over=cost is None)
    used = usage.of_counter(_counter(row, limit, key))
    return LimitEvaluation(limit, key, used, cost, is_over=_is_over(used, cost))


def _counter(row: Limit, limit: CompiledLimit, key: CounterKey) -> LimitCounter:
    """The counter; an unsaved one where nothing was used yet."""
    counter = find_settled(limit, key.key) or LimitCounter(limit=row, key=key.key)
    counter.limit, counter.label = row, key.label
    return counter


def _is_over(used: LimitUsage, cost: Decimal | None) -> bool:
    if used.limit.kind in Limit.BREAKERS:
        return used.until is not None
    return cost is None or used.used + cost > used.most
