"""Limits as the agents' path holds them: compiled once a change of configuration.

Which limits cover an agent and a definition is found out once, so that a call that none of them
covers pays a dictionary look-up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from core.english import gettext as _
from core.english import with_full_stop
from policies.decide import REMEMBERED, CallScope, Subject
from policies.limits.words import Measured, measure, wait
from policies.models import Limit, LimitEffect, Rule
from registry.versions.search_index import risk

PERIOD_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "month": 30 * 86_400}


def emission_s(limit: Measured) -> float:
    """The emission interval of a rate: how far one use moves the theoretical arrival time."""
    return PERIOD_S[limit.period] / float(limit.amount)


class CallParties(NamedTuple):
    """The parties of a call, each by its id and its name."""

    agent: tuple[int, str]
    person: tuple[int, str]
    toolset: str
    server: tuple[int, str]
    tool: tuple[int, str]
    hints: Mapping[str, bool]

    def part(self, per: str) -> tuple[str, str]:
        match per:
            case Limit.Per.TOOLSET:
                return self.toolset, self.toolset
            case Limit.Per.RISK:
                found = risk(self.hints)
                return found.value, str(found.label)
            case _:
                number, name = getattr(self, per)
                return str(number), name


@dataclass(frozen=True, slots=True)
class CounterKey:
    """Which count of a limit a call belongs to."""

    key: str
    label: str
    agent_id: int | None
    person_id: int | None


@dataclass(frozen=True, slots=True)
class CompiledLimit:
    id: int
    name: str
    kind: str
    effect: LimitEffect
    shadow: bool
    amount: Decimal
    period: str
    burst: int
    cost: Decimal | None
    cost_path: tuple[str, ...]
    # In the result: what the call cost instead of what it reserved.
    result_path: tuple[str, ...]
    unit: str
    hold_s: int
    per: tuple[str, ...]
    scope: CallScope
    reason: str
    # Counted in shares, and not in the commit that opens the call.
    is_rate: bool
    # Of rates; otherwise 0.
    emission_s: float
    counts_bytes: bool

    def key(self, parties: CallParties) -> CounterKey:
        parts = [(per, *parties.part(per)) for per in self.per]
        return CounterKey(
            " ".join(f"{per}:{number}" for per, number, _name in parts),
            " · ".join(name for _per, _number, name in parts) or _("all together"),
            parties.agent[0] if Limit.Per.AGENT in self.per else None,
            parties.person[0] if Limit.Per.PERSON in self.per else None,
        )

    def sentence(self, wait_s: float | None, why: str = "") -> str:
        """Why a call is too much, for agents and on cards."""
        if why:
            return _("Limit “%(limit)s”: %(why)s") % {"limit": self.name, "why": why}
        parts = [self.reached, with_full_stop(self.reason)]
        if self.effect == LimitEffect.DENY:
            parts.append(self._when(wait_s))
        if self.effect == LimitEffect.WARN:
            parts.append(_("This is only a warning."))
        return " ".join(part for part in parts if part)

    @property
    def lets_run(self) -> bool:
        """Whether a call that is too much runs all the same."""
        return self.shadow or self.effect == LimitEffect.WARN

    @property
    def lacks_cost(self) -> str:
        """Why nobody can say what a call costs."""
        said = _("it counts the argument “%s”, which has to be a number of at least 0.")
        return said % ".".join(self.cost_path)

    def _when(self, wait_s: float | None) -> str:
        if wait_s is not None:
            return _("Ask again in %s.") % wait(wait_s)
        if self.kind == Limit.Kind.CONCURRENCY:
            return _("Ask again when one of them has ended.")
        return _("The call alone is more than that.")

    @property
    def reached(self) -> str:
        """The fact, in one sentence."""
        said = {"limit": self.name, "measure": measure(self)}
        if self.kind in Limit.BREAKERS:
            minutes = {"minutes": self.hold_s // 60}
            return _("Limit “%(limit)s”: after %(measure)s, for %(minutes)s minutes.") % (
                said | minutes
            )
        return _("Limit “%(limit)s” is reached: %(measure)s.") % said


@dataclass(frozen=True, slots=True)
class LimitReached:
    """`wait_s`: None where nobody can say when there will be room; `why`: something else is wrong
    with the call than its number."""

    limit: CompiledLimit
    key: CounterKey
    wait_s: float | None
    why: str = ""

    @property
    def sentence(self) -> str:
        return self.limit.sentence(self.wait_s, self.why)

    @property
    def warning(self) -> dict[str, Any]:
        """For the agent of a call that runs all the same. `after_s`: None where nobody can say
        when there will be room."""
        after_s = None if self.wait_s is None else math.ceil(self.wait_s)
        return {"name": self.limit.name, "said": self.sentence, "after_s": after_s}

    @property
    def problem(self) -> str:
        """Which of the three: nobody can say its cost, it alone is too much, or there is no room
        now."""
        if self.why:
            return "cost"
        never = self.wait_s is None and self.limit.kind != Limit.Kind.CONCURRENCY
        return "size" if never else "room"

    @property
    def is_hopeless(self) -> bool:
        """The same call will be too much for ever."""
        return self.problem != "room"


class TakenUses(NamedTuple):
    """Uses of a rate that a call took from its process's share, on the monotonic clock: spent
    there until `ends_at`; without them the count would not have been empty before `busy_until`."""

    limit: CompiledLimit
    key: CounterKey
    uses: int
    ends_at: float
    busy_until: float


Covering = tuple[CompiledLimit, ...]
LimitKey = tuple[CompiledLimit, CounterKey]


class CallCounters(NamedTuple):
    """Where a call is counted: in shares, and in the commit that opens it."""

    rates: tuple[LimitKey, ...]
    exact: tuple[LimitKey, ...]


@dataclass(slots=True)
class LimitBook:
    """Limits at one moment. Caches: `known`, of those that cover an agent and a definition;
    `counters`, of these at a toolset."""

    limits: Covering = ()
    known: dict[tuple[int, int], Covering] = field(default_factory=dict)
    counters: dict[tuple[int, int, str], CallCounters] = field(default_factory=dict)

    def covering(self, subject: Subject) -> Covering:
        key = (subject.agent_id, subject.definition_id)
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= REMEMBERED:
                self.known.clear()
            found = self.known[key] = tuple(one for one in self.limits if one.scope.covers(subject))
        return found

    def count(self, subject: Subject, parties: CallParties) -> CallCounters:
        """Makes the call's entry of `counters`."""
        keys = [(limit, limit.key(parties)) for limit in self.covering(subject)]
        rates = tuple(one for one in keys if one[0].is_rate)
        exact = tuple(one for one in keys if not one[0].is_rate)
        if len(self.counters) >= REMEMBERED:
            self.counters.clear()
        place = (subject.agent_id, subject.definition_id, parties.toolset)
        found = self.counters[place] = CallCounters(rates, exact)
        return found


def load() -> LimitBook:
    rows = Limit.objects.in_use().order_by("pk").prefetch_related("agents", "owner_groups")
    return LimitBook(tuple(compiled(row) for row in rows))


def compiled(limit: Limit) -> CompiledLimit:
    return CompiledLimit(
        id=limit.pk,
        name=limit.name,
        kind=limit.kind,
        effect=LimitEffect(limit.effect),
        shadow=limit.mode == Rule.Mode.SHADOW,
        amount=limit.amount,
        period=limit.period,
        burst=limit.most_at_once,
        cost=limit.cost,
        cost_path=tuple(limit.cost_argument.split(".")) if limit.cost_argument else (),
        result_path=tuple(limit.cost_result.split(".")) if limit.cost_result else (),
        unit=limit.unit,
        hold_s=(limit.minutes or 0) * 60,
        per=tuple(limit.per),
        scope=CallScope.of(limit),
        reason=limit.reason,
        is_rate=limit.kind in Limit.RATES,
        emission_s=emission_s(limit) if limit.kind in Limit.RATES else 0.0,
        counts_bytes=limit.kind == Limit.Kind.BYTES,
    )
