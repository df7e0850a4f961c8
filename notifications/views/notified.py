"""People who were notified of a pending call, where and when, and what they did then."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme

from accounts.http import ConsoleRequest
from approvals.models import Approval, Vote
from core.http import is_htmx, page
from notifications.delivery_entries import note_follower, notes_unsigned
from notifications.models import Delivery, Escalation
from notifications.recipients import ASKED
from notifications.recorded_deliveries import recorded_alone


class Notified(NamedTuple):
    """A delivery, and the standing vote of the person whom it reached."""

    delivery: Delivery
    vote: Vote | None


@page("approvals.view_approval")
def notified(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """A piece for the call's card, and a page of its own."""
    approval = get_object_or_404(Approval.objects.select_related("call"), pk=call_id)
    stored = list(Delivery.objects.filter(call_id=call_id, event__in=ASKED).for_page())
    asked = [one for one in (*stored, *recorded_alone(call_id, stored)) if one.reader]
    votes = {one.person_id: one for one in Vote.objects.standing().filter(approval=approval)}
    context = {
        "section": "queue",
        "call": approval.call,
        "deliveries": [
            Notified(one, votes.get(one.reader.pk) if one.reader else None)
            for one in sorted(asked, key=lambda one: one.pk)
        ],
        "waiting": Escalation.objects.filter(call_id=call_id).order_by("next_at"),
    }
    whole = "notifications/notified.html"
    return render(request, f"{whole}#people" if is_htmx(request) else whole, context)


@notes_unsigned
@page("")
def follow(request: ConsoleRequest, pk: UUID, there: str) -> HttpResponse:
    """From a mail or a chat to the page that it is about. It notes who came; whoever else has the
    link sees there what they may see anyway."""
    address = _address(there, request.META["QUERY_STRING"])
    # Rows of messages are removed after a while: their links still lead there.
    if delivery := Delivery.objects.for_page().with_link().filter(pk=pk).first():
        note_follower(delivery, request.user)
    return redirect(address)


def _address(path: str, query: str) -> str:
    """Raises Http404 for the address of another site."""
    address = f"/{path}?{query}" if query else f"/{path}"
    if not url_has_allowed_host_and_scheme(address, allowed_hosts=None):
        raise Http404
    return address
