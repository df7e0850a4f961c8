"""A denial that its voter can still take back: stored, shown to people, and told to no agent.

`Approval.denies_at` says until when. The sweep denies the call then (approvals/services.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import DateTimeField, ExpressionWrapper, F, Value
from django.db.models.functions import Least, Now

from approvals.models import Approval, Vote
from audit.models import ClockTime

# So long a ring may be late.
LATELY = timedelta(minutes=2)


def can_be_taken_back(approval: Approval) -> bool:
    """Whether the votes that deny it are not to be told yet. One that has begun is for the sweep,
    also where the setting was changed since."""
    return approval.denies_at is not None or settings.TAKE_BACK_S > 0


def begin(approval: Approval) -> bool:
    """Whether it begins now. It ends with the time to decide at the latest."""
    if approval.denies_at is not None:
        return False
    span = Value(timedelta(seconds=settings.TAKE_BACK_S))
    after = ExpressionWrapper(ClockTime() + span, output_field=DateTimeField())
    # Under an emergency stop the time to decide does not run.
    is_stopped = approval.call.clock_stopped_at is not None
    at = after if is_stopped else Least(after, F("decide_by"))
    Approval.objects.filter(pk=approval.pk).update(denies_at=at)
    approval.refresh_from_db(fields=["denies_at"])
    return True


def end(approval: Approval) -> bool:
    """Its votes no longer deny it, or did so until now; whether they did."""
    if approval.denies_at is None:
        return False
    Approval.objects.filter(pk=approval.pk).update(denies_at=None)
    approval.denies_at = None
    return True


def is_over(approval: Approval) -> bool:
    """Its time to be taken back has passed, though the sweep may not have come to it."""
    return Approval.objects.filter(pk=approval.pk, denies_at__lte=ClockTime()).exists()


def changed(approvals: Iterable[Approval]) -> set[UUID]:
    """The calls among these that are being denied, or were until a moment ago: lists say so."""
    waiting = [one for one in approvals if one.state == Approval.State.WAITING]
    now = {one.pk for one in waiting if one.is_being_denied}
    if not settings.TAKE_BACK_S:
        return now
    back = Vote.objects.filter(approval__in=waiting, approve=False, fallen_at__gte=Now() - LATELY)
    return now | set(back.values_list("approval_id", flat=True))
