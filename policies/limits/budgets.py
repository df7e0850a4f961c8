"""Budgets of a pending call that people let run: an approval goes past no hard one, break-glass
past none at all.

What the call reserved when it was requested may be of a window that has ended, of a budget that was
lowered, or missing in one that was made since.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from uuid import UUID

from django.db import connection

from policies.decide import Subject
from policies.limits.compiled import CallParties, CompiledLimit, CounterKey, LimitKey, load
from policies.limits.costs import cost_of
from policies.limits.settling import settle
from policies.models import Limit, LimitCounter, LimitEffect, LimitUse, Rule

FindCounter = Callable[[CompiledLimit, CounterKey], LimitCounter | None]

# By the clock that settles.
_IS_OVER = "SELECT %s < date_trunc(%s, clock_timestamp(), 'UTC')"


def find_exceeded(call_id: UUID, subject: Subject, parties: CallParties, arguments: bytes) -> str:
    """Why a budget does not cover the call now, as a sentence; empty if all do."""
    return _find_exceeded(call_id, _budgets(subject, parties), arguments)


def find_exceeded_hard(
    call_id: UUID, subject: Subject, parties: CallParties, arguments: bytes
) -> str:
    """`find_exceeded`, of hard budgets alone."""
    return _find_exceeded(call_id, hard(subject, parties, Limit.Kind.COST), arguments)


def _find_exceeded(call_id: UUID, budgets: list[LimitKey], arguments: bytes) -> str:
    found = (
        _why_over(limit, arguments, _spent_now(call_id, limit, _find_counter(limit, key)))
        for limit, key in budgets
    )
    return next(filter(None, found), "")


def reserve(call_id: UUID, subject: Subject, parties: CallParties, arguments: bytes) -> str:
    """`find_exceeded`, in the caller's transaction: where it is empty, each of them holds what the
    call costs."""
    return _reserve(call_id, _budgets(subject, parties), arguments)


def reserve_approved(
    call_id: UUID, subject: Subject, parties: CallParties, arguments: bytes
) -> str:
    """`reserve`, in hard budgets alone."""
    # Those of approved_calls.py too: all that gateways lock is locked in their order.
    for one in hard(subject, parties, Limit.Kind.COST, Limit.Kind.CONCURRENCY):
        lock_counter(*one)
    return _reserve(call_id, hard(subject, parties, Limit.Kind.COST), arguments)


def hard(subject: Subject, parties: CallParties, *kinds: str) -> list[LimitKey]:
    """In the order in which counters are locked."""
    return [one for one in _enforced(subject, parties, *kinds) if one[0].effect == LimitEffect.DENY]


def has_hard() -> bool:
    """Whether there is a hard limit that an approval meets."""
    enforced = Limit.objects.in_use().exclude(mode=Rule.Mode.SHADOW)
    kinds = (Limit.Kind.COST, Limit.Kind.CONCURRENCY, *Limit.RATES)
    return enforced.filter(kind__in=kinds, effect=LimitEffect.DENY).exists()


def _reserve(call_id: UUID, budgets: list[LimitKey], arguments: bytes) -> str:
    """In all of them or in none. Each counter is locked and in its present window by then."""
    settled = [(limit, lock_counter(limit, key)) for limit, key in budgets]
    for limit, counter in settled:
        if why := _why_over(limit, arguments, _spent_by_others(call_id, counter)):
            return why
    for limit, counter in settled:
        cost = cost_of(limit, arguments) or Decimal(0)
        spent = _spent_by_others(call_id, counter) + cost
        LimitCounter.objects.filter(pk=counter.pk).update(spent=spent)
        LimitUse.objects.update_or_create(
            counter=counter, call_id=call_id, defaults={"amount": cost}
        )
    return ""


def _budgets(subject: Subject, parties: CallParties) -> list[LimitKey]:
    return _enforced(subject, parties, Limit.Kind.COST)


def _enforced(subject: Subject, parties: CallParties, *kinds: str) -> list[LimitKey]:
    keys = [
        (limit, limit.key(parties))
        for limit in load().covering(subject)
        if limit.kind in kinds and not limit.lets_run
    ]
    return sorted(keys, key=lambda one: (one[0].id, one[1].key))


def _find_counter(limit: CompiledLimit, key: CounterKey) -> LimitCounter | None:
    return LimitCounter.objects.filter(limit_id=limit.id, key=key.key).first()


def lock_counter(limit: CompiledLimit, key: CounterKey) -> LimitCounter:
    """The counter, locked and brought to the present window."""
    named = {"label": key.label[:500], "agent_id": key.agent_id, "person_id": key.person_id}
    found, _made = LimitCounter.objects.select_for_update().get_or_create(
        limit_id=limit.id, key=key.key, defaults=named
    )
    settle(found, limit)
    return found


def _why_over(limit: CompiledLimit, arguments: bytes, spent_by_others: Decimal) -> str:
    cost = cost_of(limit, arguments)
    if cost is None:
        return limit.sentence(None, limit.lacks_cost)
    return limit.reached if spent_by_others + cost > limit.amount else ""


def _spent_now(call_id: UUID, limit: CompiledLimit, counter: LimitCounter | None) -> Decimal:
    """The counter is not settled: it may be of a window that has ended."""
    if counter is None or counter.since is None:
        return Decimal(0)
    with connection.cursor() as cursor:
        cursor.execute(_IS_OVER, [counter.since, limit.period])
        (is_over,) = cursor.fetchone()
    return Decimal(0) if is_over else _spent_by_others(call_id, counter)


def _spent_by_others(call_id: UUID, counter: LimitCounter) -> Decimal:
    own = LimitUse.objects.filter(counter=counter, call_id=call_id).first()
    return counter.spent - (own.amount if own else 0)
