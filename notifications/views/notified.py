"""People who were notified of a pending call, where and when, and what they did then."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from accounts.http import ConsoleRequest
from approvals.models import Approval, Vote
from core.http import is_htmx, page
from notifications.delivery_entries import note_follower, notes_unsigned
from notifications.models import Delivery, Escalation
from notifications.payloads import path
from notifications.recipients import ASKED


class Notified(NamedTuple):
    """A delivery, and the standing vote of the person whom it reached."""

    delivery: Delivery
    vote: Vote | None


@page("approvals.view_approval")
def notified(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """A piece for the call's card, and a page of its own."""
    approval = get_object_or_404(Approval.objects.select_related("call"), pk=call_id)
    asked = Delivery.objects.filter(call_id=call_id, event__in=ASKED, webhook=None)
    votes = {one.person_id: one for one in Vote.objects.standing().filter(approval=approval)}
    context = {
        "section": "queue",
        "call": approval.call,
        "deliveries": [
            Notified(one, votes.get(one.reader.pk) if one.reader else None)
            for one in asked.for_page().order_by("created_at", "pk")
        ],
        "waiting": Escalation.objects.filter(call_id=call_id).order_by("next_at"),
    }
    whole = "notifications/notified.html"
    return render(request, f"{whole}#people" if is_htmx(request) else whole, context)


@notes_unsigned
@page("")
def follow(request: ConsoleRequest, call_id: UUID, pk: UUID) -> HttpResponse:
    """From a mail to the page of its call. It notes who came; whoever else has the link sees there
    what they may see anyway."""
    delivery = Delivery.objects.for_page().filter(pk=pk, call_id=call_id, webhook=None).first()
    if delivery is None:
        # Rows of messages are removed after a while.
        is_decided_here = request.user.has_perm("approvals.view_approval") and (
            Approval.objects.filter(pk=call_id).exists()
        )
        return redirect("approvals:detail" if is_decided_here else "calls:detail", call_id)
    note_follower(delivery, request.user)
    return redirect(path(delivery))
