"""People who were notified of a pending call, where and when, by its deliveries."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from approvals.models import Approval
from core.http import is_htmx, page
from notifications.models import Delivery, Escalation
from notifications.recipients import ASKED


@page("approvals.view_approval")
def notified(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """A piece for the call's card, and a page of its own."""
    approval = get_object_or_404(Approval.objects.select_related("call"), pk=call_id)
    asked = Delivery.objects.filter(call_id=call_id, event__in=ASKED, webhook=None)
    context = {
        "section": "queue",
        "call": approval.call,
        "deliveries": asked.for_page().order_by("created_at", "pk"),
        "waiting": Escalation.objects.filter(call_id=call_id).order_by("next_at"),
    }
    whole = "notifications/notified.html"
    return render(request, f"{whole}#people" if is_htmx(request) else whole, context)
