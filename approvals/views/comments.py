"""Votes and comments on a held call: on its card in the queue, and on the call's own page."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from approvals import services
from approvals.cards import card, news
from approvals.comments import CommentRefused
from approvals.comments import say as add
from approvals.models import Approval
from approvals.services import DecisionRefused
from calls.views.call_page import may_read_payload
from core.http import is_htmx, page
from core.outage import recording


@page("calls.view_call")
def show(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """Comments and votes on the call's page, for those who see its arguments."""
    approval = _readable(request, call_id)
    shown = card(approval, request.user)
    context = {
        "section": "queue" if shown.waits else "calls",
        "card": shown,
        "approval": approval,
        "call": approval.call,
    }
    template = "approvals/talk.html#part" if is_htmx(request) else "approvals/talk.html"
    return render(request, template, context)


@page("calls.view_call", "POST")
def say(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    error = ""
    with recording(request):
        approval = _readable(request, call_id)
        try:
            add(
                approval,
                by=request.user,
                text=request.POST.get("text", "").strip(),
                ask_agent=request.POST.get("to") == "agent",
            )
        except CommentRefused as refused:
            error = str(refused)
    if is_htmx(request):
        context = {"card": news([approval], request.user)[0], "approval": approval}
        return render(request, "approvals/parts/answered.html", context | {"error": error})
    if error:
        messages.warning(request, error)
    return _back(request, call_id)


@page("approvals.decide_approval", "POST")
def take_back(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    error = ""
    with recording(request):
        approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
        try:
            services.take_back(approval, by=request.user)
        except DecisionRefused as refused:
            error = str(refused)
    if is_htmx(request):
        approval = Approval.objects.for_queue().get(pk=call_id)
        fresh = card(approval, request.user, error=error, session=request.session)
        context = {"card": fresh, "answered": True}
        return render(request, "approvals/card.html", context)
    if error:
        messages.warning(request, error)
    else:
        messages.success(request, _("Your vote is taken back."))
    return _back(request, call_id)


def _readable(request: ConsoleRequest, call_id: UUID) -> Approval:
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    if not may_read_payload(approval.call, request.user):
        raise Http404
    return approval


def _back(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """To the page of ours that it was pressed on."""
    there = request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(there, {request.get_host()}, request.is_secure()):
        return redirect(there)
    return redirect("calls:detail", call_id)
