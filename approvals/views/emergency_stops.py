"""The kill switch's page, and what every page says while something is frozen."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import Agent
from approvals import freezes
from approvals.freezes import NotFrozen
from calls.models import Freeze
from core.http import page
from registry.models import Server

SHOWN = 50


@page("calls.view_call")
def stops(request: ConsoleRequest) -> HttpResponse:
    every = Freeze.objects.for_page()
    context = {
        "section": "freezes",
        "holding": every.holding(),
        "ended": every.exclude(ended_at=None)[:SHOWN],
        "agents": Agent.objects.order_by("name"),
        "servers": Server.objects.kept().order_by("slug"),
    }
    return render(request, "approvals/freezes.html", context)


@page("calls.view_call")
def banner(request: HttpRequest) -> HttpResponse:
    return render(request, "ui/frozen.html")


@page(freezes.BEGIN, "POST")
def begin(request: ConsoleRequest) -> HttpResponse:
    kind, _colon, name = request.POST.get("what", "").partition(":")
    agent = get_object_or_404(Agent, name=name) if kind == "agent" else None
    server = get_object_or_404(Server, slug=name) if kind == "server" else None
    if kind not in ("agent", "server", "everything"):
        messages.warning(request, _("Say what to suspend."))
        return redirect("approvals:freezes")
    reason = request.POST.get("reason", "").strip()
    try:
        freezes.begin(
            by=request.user,
            reason=reason,
            agent=agent,
            server=server,
        )
    except NotFrozen as error:
        messages.warning(request, str(error))
        if not reason:
            query = urlencode({"what": request.POST["what"]})
            return redirect(f"{reverse('approvals:new_freeze')}?{query}")
    return redirect("approvals:freezes")


@page(freezes.END, "POST")
def end(request: ConsoleRequest, pk: int) -> HttpResponse:
    freeze = get_object_or_404(Freeze.objects.for_page(), pk=pk)
    try:
        freezes.end(freeze, by=request.user, why=request.POST.get("why", "").strip())
    except NotFrozen as error:
        messages.warning(request, str(error))
    else:
        messages.success(
            request, _("It is resumed. Pending calls have the time that they had left.")
        )
    return redirect("approvals:freezes")
