"""Thresholds that count late: once a call has been pending for so long, others may decide it too.

Only a rule says so, of each threshold. The database counts none of their votes before, and an entry
says when it began, of which they are notified (notifications/escalation.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from approvals.models import Approval
from approvals.services import DecisionRefused, lock, reconsider
from audit.models import ClockTime
from audit.services import SYSTEM, record
from calls.freezes import frozen
from core.english import ngettext
from core.live import notify_on_commit
from core.outage import AWAY
from policies.thresholds import Threshold, describe, next_widening, stored

log = logging.getLogger(__name__)


def widen() -> None:
    """Lets the next thresholds of pending calls count, where they have been pending for so long.
    Not under an emergency stop, nor while a denial can be taken back."""
    due = Approval.objects.waiting().filter(
        ~frozen("call__"), widens_at__lte=Now(), decide_by__gt=Now(), denies_at=None
    )
    for approval in due.order_by("widens_at")[:100]:
        try:
            with suppress(DecisionRefused):
                _widen(approval)
        except AWAY:
            raise
        except Exception:
            log.exception("Approval %s could not be widened; the others are.", approval.pk)


def widens_at(approval: Approval, thresholds: Iterable[Threshold]) -> datetime | None:
    """When the next of these would count, never before what was said already."""
    after = next_widening(thresholds, approval.widened_min)
    if after is None:
        return None
    at = approval.asked_at + timedelta(minutes=after)
    return max(at, approval.widens_at or at)


@transaction.atomic
def _widen(approval: Approval) -> None:
    """Raises DecisionRefused where nobody decides on it any more, or not yet."""
    lock(approval)
    thresholds = stored(approval.thresholds)
    after = next_widening(thresholds, approval.widened_min)
    due = Approval.objects.filter(
        pk=approval.pk, widens_at__lte=ClockTime(), denies_at=None, call__clock_stopped_at=None
    )
    if after is None or approval.widens_at is None or not due.exists():
        return
    further = next_widening(thresholds, after)
    # From when this was due: an emergency stop may have moved it.
    then = approval.widens_at + timedelta(minutes=further - after) if further else None
    Approval.objects.filter(pk=approval.pk).update(widened_min=after, widens_at=then)
    _record(approval, [one for one in thresholds if one.after_min == after], after)
    notify_on_commit("queue", "calls", f"call.{approval.pk}")
    # Votes that stand may suffice now.
    reconsider(approval)


def _record(approval: Approval, opened: list[Threshold], after: int) -> None:
    who = describe(replace(one, after_min=0) for one in opened)
    said = ngettext(
        "Pending for %(n)d minute, so its rule lets others decide too: %(who)s.",
        "Pending for %(n)d minutes, so its rule lets others decide too: %(who)s.",
        after,
    )
    call = approval.call
    record(
        "approval.widened",
        actor=SYSTEM,
        reason=said % {"n": after, "who": who},
        call_id=call.pk,
        agent=(call.agent_id, call.agent.name),
        tool=call.tool_name,
        after_min=after,
        call_digest=call.call_digest,
        thresholds=[one.plain() for one in opened],
    )
