"""Removes counters that say no more than that nothing was used."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from policies.models import Limit, LimitCounter, LimitUse

AT_ONCE = 1000
# A rate is full again, or a loop breaker let go, so long ago.
IDLE = timedelta(days=1)
# Longer than any budget's window.
WINDOW = timedelta(days=62)


@transaction.atomic
def sweep_counters() -> int:
    """Removes at most AT_ONCE counters, and returns how many they were. One that calls use at this
    moment is left to the next time: whoever comes later begins with nothing used, as before."""
    locked = LimitCounter.objects.filter(_unused()).select_for_update(skip_locked=True)
    found = list(locked.order_by("pk").values_list("pk", flat=True)[:AT_ONCE])
    # Only now, since nobody can reserve any more.
    uses = LimitUse.objects.filter(counter_id=OuterRef("pk"))
    unused = LimitCounter.objects.filter(~Exists(uses), pk__in=found)
    removed, _by_model = unused.delete()
    return removed


def _unused() -> Q:
    now = timezone.now()
    limits = Limit.objects.filter(pk=OuterRef("limit_id"))
    rests = Q(until=None) | Q(until__lt=now - IDLE)
    idle = (
        Q(~Exists(limits))
        | Q(Exists(limits.filter(kind__in=Limit.RATES)), tat__lt=now - IDLE)
        | Q(Exists(limits.filter(kind=Limit.Kind.COST)), since__lt=now - WINDOW)
        | Q(Exists(limits.filter(kind=Limit.Kind.CONCURRENCY)), spent=0)
        | Q(Exists(limits.filter(kind__in=Limit.BREAKERS)), rests, spent=0)
    )
    return idle & Q(~Exists(LimitUse.objects.filter(counter_id=OuterRef("pk"))))
