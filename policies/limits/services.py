"""Changing limits, each change with its entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from accounts.models import Agent
from audit.services import Actor, record
from policies.limits.compiled import emission_s
from policies.models import Limit, LimitCounter, LimitUse, Rule
from registry import managed


@transaction.atomic
def save_limit(
    limit: Limit, *, by: Actor, agents: Sequence[Agent] = (), owner_groups: Sequence[Group] = ()
) -> Limit:
    """Create or change a limit; raises ValidationError for one that could not be right. What was
    used of it counts on, unless something else is counted now."""
    managed.check(managed.LIMITS, by=by)
    before = Limit.objects.filter(pk=limit.pk).first()
    limit.full_clean()
    limit.save()
    limit.agents.set(agents)
    limit.owner_groups.set(owner_groups)
    if before is not None and (before.kind, before.per) != (limit.kind, limit.per):
        forget_use(limit)
    elif before is not None and limit.kind in Limit.RATES:
        carry_over(limit, emission_s(limit) / emission_s(before))
    record("limit.saved", actor=by, **facts(limit))
    return limit


@transaction.atomic
def set_limit_enabled(limit: Limit, enabled: bool, *, by: Actor) -> bool:
    """Switch it on or off; False if it was so already."""
    managed.check(managed.LIMITS, by=by)
    mode = Rule.Mode.ENFORCE if enabled else Rule.Mode.OFF
    others = Limit.objects.exclude(mode=mode)
    if enabled:
        others = others.filter(mode=Rule.Mode.OFF)
    if not others.filter(pk=limit.pk).update(mode=mode):
        return False
    limit.mode = mode
    record("limit.enabled" if enabled else "limit.disabled", actor=by, **facts(limit))
    return True


@transaction.atomic
def remove_limit(limit: Limit, *, by: Actor) -> None:
    managed.check(managed.LIMITS, by=by)
    record("limit.removed", actor=by, **facts(limit))
    forget_use(limit)
    limit.delete()


def carry_over(limit: Limit, ratio: float) -> None:
    """Keeps the number of uses of a rate, each of which now fills another time: who raises a limit
    leaves room at once. `ratio`: of the emission interval now to that before."""
    ahead = ExpressionWrapper((F("tat") - Now()) * ratio, output_field=DurationField())
    moved = ExpressionWrapper(Now() + ahead, output_field=DateTimeField())
    LimitCounter.objects.filter(limit=limit, tat__gt=Now()).update(tat=moved)


def forget_use(limit: Limit) -> None:
    """Locks counters before their uses, as the commits that open calls do (calls/sql/limits.sql):
    neither waits for the other."""
    locked = LimitCounter.objects.filter(limit=limit).order_by("key").select_for_update()
    counters = list(locked.values_list("pk", flat=True))
    LimitUse.objects.filter(counter_id__in=counters).delete()
    LimitCounter.objects.filter(pk__in=counters).delete()


def facts(limit: Limit) -> dict[str, Any]:
    return {
        "limit": limit.name,
        "limit_kind": limit.kind,
        "limit_mode": limit.mode,
        "limit_effect": limit.effect,
        "limit_amount": str(limit.amount.normalize()),
        "limit_period": limit.period,
        "limit_burst": limit.burst,
        "limit_cost": None if limit.cost is None else str(limit.cost.normalize()),
        "limit_cost_argument": limit.cost_argument,
        "limit_cost_result": limit.cost_result,
        "limit_unit": limit.unit,
        "limit_minutes": limit.minutes,
        "limit_per": limit.per,
        "limit_server": limit.server,
        "limit_tool": limit.tool,
        "limit_hint": limit.hint,
        "limit_agents": [agent.name for agent in limit.agents.all()],
        "limit_groups": [group.name for group in limit.owner_groups.all()],
        "limit_reason": limit.reason,
    }
