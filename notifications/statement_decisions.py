"""Programs are told of the decision on a statement once it can be read.

After people approved it, a worker checks rules and emergency stops once more: until then there is
no decision, and in the end it may be another one.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from approvals.models import Approval
from approvals.statements import decision_of, is_statement
from calls.models import Call
from notifications.events import ANSWERS
from notifications.models import Delivery

# Looked for after this share of the time for which the message has waited.
SHARE = 0.25
SOONEST, LATEST = timedelta(seconds=1), timedelta(minutes=1)


def resumes_at(delivery: Delivery) -> datetime | None:
    """When the message to a program is looked at again; None: it may be sent."""
    call = _statement(delivery)
    if call is None or decision_of(call, None):
        return None
    now = timezone.now()
    return now + min(max((now - delivery.created_at) * SHARE, SOONEST), LATEST)


def decision(delivery: Delivery) -> str | None:
    """The decision that `GET /api/approvals/ID` has; None where the message is on no statement."""
    call = _statement(delivery)
    if call is None:
        return None
    return decision_of(call, Approval.objects.filter(pk=call.pk).first())


def _statement(delivery: Delivery) -> Call | None:
    if not delivery.is_for_program or not delivery.call_id or delivery.event not in ANSWERS:
        return None
    call = Call.objects.select_related("server").filter(pk=delivery.call_id).first()
    return call if call and is_statement(call) else None
