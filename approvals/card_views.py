"""The moment when the card of a pending call is first shown to somebody who decides."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from django.db import DatabaseError
from django.utils import timezone

from accounts.models import User
from approvals.models import Approval, CardView
from policies.thresholds import DECIDE

KEPT = timedelta(days=90)


def note(approval: Approval, person: User) -> None:
    """Only the first time counts. Where it cannot be written, the card is shown all the same."""
    if approval.state != Approval.State.WAITING or not person.has_perm(DECIDE):
        return
    shown = CardView(call_id=approval.pk, person=person)
    # In a transaction of its own, which bulk_create opens.
    with suppress(DatabaseError):
        CardView.objects.bulk_create([shown], ignore_conflicts=True)


def remove_old() -> int:
    removed, _each = CardView.objects.filter(at__lt=timezone.now() - KEPT).delete()
    return removed
