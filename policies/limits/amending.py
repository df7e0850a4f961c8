"""A pending call is to be sent with other arguments, which may say another cost."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from policies.limits.compiled import CompiledLimit, compiled
from policies.limits.costs import cost_of
from policies.limits.settling import settle
from policies.models import Limit, LimitCounter, LimitEffect, LimitUse

# As calls_use_limits has it: as far as the column goes.
MOST_SPENT = Decimal(10) ** 20 - 1


def reserve_anew(call_id: UUID, arguments: bytes) -> str:
    """In the caller's transaction: what it reserved becomes what it would cost now. Why it may
    not, where that is more than a hard budget leaves; empty if all is well."""
    reserved = LimitUse.objects.filter(call_id=call_id).values_list("counter_id", flat=True)
    counters = LimitCounter.objects.filter(pk__in=list(reserved)).order_by("limit_id", "key")
    for counter in counters.select_for_update():
        row = Limit.objects.in_use().filter(pk=counter.limit_id, kind=Limit.Kind.COST).first()
        # Of a limit that was removed nothing is counted.
        if row is None or not row.cost_argument:
            continue
        limit = compiled(row)
        settle(counter, limit)
        # Only now: before the lock another could have settled it.
        use = LimitUse.objects.filter(counter=counter, call_id=call_id).first()
        if use is not None and (why := _recount(limit, counter, use, arguments)):
            return why
    return ""


def _recount(limit: CompiledLimit, counter: LimitCounter, use: LimitUse, arguments: bytes) -> str:
    cost = cost_of(limit, arguments)
    if cost is None and not limit.lets_run:
        return limit.sentence(None, limit.lacks_cost)
    cost = cost or Decimal(0)
    is_hard = limit.effect == LimitEffect.DENY and not limit.shadow
    spent = counter.spent - use.amount + cost
    if is_hard and cost > use.amount and spent > limit.amount:
        return limit.reached
    LimitCounter.objects.filter(pk=counter.pk).update(spent=min(spent, MOST_SPENT))
    LimitUse.objects.filter(pk=use.pk).update(amount=cost)
    return ""
