"""Usage of limits for pages, as the counters have it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Agent
from policies.limits.compiled import emission_s
from policies.limits.settling import settled_counters
from policies.limits.words import number, shown_measure
from policies.models import Limit, LimitCounter
from registry.models import Tool, Toolset

SHOWN = 50
MOST_SHARED = 1_000


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """Usage of one counter. `free_at`: when all of it is free again; None where no clock says."""

    limit: Limit
    label: str
    used: Decimal
    most: Decimal
    free_at: datetime | None = None
    # Of loop breakers: its next calls are too much until then.
    until: datetime | None = None

    @property
    def measure(self) -> str:
        return shown_measure(self.limit)

    @property
    def is_reached(self) -> bool:
        return self.until is not None or self.used >= self.most

    @property
    def said(self) -> str:
        unit = f" {self.limit.unit}" if self.limit.unit else ""
        said = {"used": number(self.used), "most": number(self.most), "unit": unit}
        if self.limit.kind in Limit.BREAKERS:
            return _("%(used)s of %(most)s in a row") % said
        return _("%(used)s of %(most)s%(unit)s used") % said


def of_limit(limit: Limit) -> list[LimitUsage]:
    """The latest counts first."""
    return _usages(LimitCounter.objects.filter(limit=limit))


def count_counters(limit: Limit) -> int:
    return LimitCounter.objects.filter(limit=limit).count()


def of_agent(agent: Agent) -> list[LimitUsage]:
    """Usage of limits that are counted for the agent or its owner, and of counts that it shares
    with others."""
    own = Q(agent_id=agent.pk) | Q(agent_id=None, person_id=agent.owner_id)
    found = own | Q(pk__in=_shared_with(agent))
    return _usages(LimitCounter.objects.filter(found).exclude(limit__mode="off"))


def _shared_with(agent: Agent) -> list[int]:
    """Counters of what its toolsets have, of limits that cover its calls."""
    groups = agent.owner.groups.all()
    covers = Q(limit__agents=None) | Q(limit__agents=agent)
    covers &= Q(limit__owner_groups=None) | Q(limit__owner_groups__in=groups)
    shared = LimitCounter.objects.filter(covers, agent_id=None, person_id=None).distinct()
    within = _parts_of(agent)
    newest = shared.order_by("-pk").values_list("pk", "key")[:MOST_SHARED]
    return [pk for pk, key in newest if within.issuperset(key.split())]


def _parts_of(agent: Agent) -> set[str]:
    """Parts of keys that its calls may have (policies/limits/compiled.py)."""
    toolsets = Toolset.objects.filter(agents=agent)
    tools = Tool.objects.filter(Q(toolsets__in=toolsets) | Q(server__toolsets__in=toolsets))
    found = {f"toolset:{slug}" for slug in toolsets.values_list("slug", flat=True)}
    for tool_id, server_id in tools.values_list("pk", "server_id"):
        found |= {f"tool:{tool_id}", f"server:{server_id}"}
    return found | {f"risk:{one}" for one in Tool.Risk.values}


def _usages(counters: models.QuerySet[LimitCounter]) -> list[LimitUsage]:
    """Usage as the next calls would find it."""
    shown = counters.select_related("limit").order_by("-pk")[:SHOWN]
    return [of_counter(one) for one in settled_counters(list(shown))]


def of_counter(counter: LimitCounter, now: datetime | None = None) -> LimitUsage:
    limit, moment = counter.limit, now or timezone.now()
    if limit.kind in Limit.RATES:
        used, free_at = _of_rate(limit, counter, moment)
        return LimitUsage(limit, counter.label, used, Decimal(limit.most_at_once), free_at)
    if limit.kind == Limit.Kind.COST:
        began = window_start(limit.period, moment)
        is_now = counter.since is not None and counter.since >= began
        used = counter.spent if is_now else Decimal(0)
        return LimitUsage(limit, counter.label, used, limit.amount, window_end(limit.period, began))
    is_tripped = counter.until is not None and counter.until > moment
    until = counter.until if is_tripped else None
    return LimitUsage(limit, counter.label, counter.spent, limit.amount, until=until)


def _of_rate(
    limit: Limit, counter: LimitCounter, moment: datetime
) -> tuple[Decimal, datetime | None]:
    if counter.tat is None or counter.tat <= moment:
        return Decimal(0), None
    # As policies_lease has it: no more than all of it is used.
    whole_s = limit.most_at_once * emission_s(limit)
    ahead_s = min((counter.tat - moment).total_seconds(), whole_s)
    used = math.ceil(ahead_s / emission_s(limit) - 1e-6)
    return Decimal(used), moment + timedelta(seconds=ahead_s)


def window_start(period: str, moment: datetime) -> datetime:
    """The start of a budget's window, as PostgreSQL's date_trunc in UTC has it."""
    there = moment.astimezone(UTC).replace(microsecond=0)
    if period == Limit.Period.SECOND:
        return there
    there = there.replace(second=0)
    if period == Limit.Period.MINUTE:
        return there
    there = there.replace(minute=0)
    if period == Limit.Period.HOUR:
        return there
    there = there.replace(hour=0)
    return there if period == Limit.Period.DAY else there.replace(day=1)


def window_end(period: str, began: datetime) -> datetime:
    if period == Limit.Period.MONTH:
        return (began + timedelta(days=32)).replace(day=1)
    return began + timedelta(**{f"{period}s": 1})
