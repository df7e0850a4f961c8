"""Saved cases of a server or of all servers, run together and scheduled together."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.http import ConsoleRequest
from accounts.models import User
from core.http import page
from core.outage import recording
from core.paging import paged
from gateway.cases import runs, services
from gateway.cases.runs import AT_ONCE
from gateway.models import CaseSchedule, SavedCase
from gateway.views.cases import ways_of
from gateway.views.schedules import schedule_context
from registry.models import Server, Tool


@page(services.PERMISSION)
def cases(request: ConsoleRequest) -> HttpResponse:
    is_troubled = request.GET.get("state") == "troubled"
    every = SavedCase.objects.for_list()
    shown = paged(every.troubled() if is_troubled else every, "id", request.GET)
    runs.settle_shown(shown.rows)
    stopped = CaseSchedule.objects.exclude(stopped="").select_related("case__tool", "server")
    context = {
        "section": "catalogue",
        "page": shown,
        "is_troubled": is_troubled,
        "stopped": stopped,
    }
    return render(request, "gateway/cases.html", context)


@page(services.PERMISSION)
def server_cases(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    shown = paged(SavedCase.objects.for_list().filter(tool__server=server), "id", request.GET)
    runs.settle_shown(shown.rows)
    context = {
        "section": "servers",
        "server": server,
        "page": shown,
        "is_open": any(case.last_run and case.last_run.is_open for case in shown.rows),
        **schedule_context(request.user, server),
    }
    return render(request, "gateway/server_cases.html", context)


@page(services.PERMISSION, "POST")
def run_of_server(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    _run_all(request, SavedCase.objects.filter(tool__server=server))
    return redirect("gateway:server_cases", slug)


@page(services.PERMISSION, "POST")
def run_of_tool(request: ConsoleRequest, name: str) -> HttpResponse:
    tool = get_object_or_404(Tool, exposed_name=name)
    _run_all(request, SavedCase.objects.filter(tool=tool))
    return redirect("gateway:try", name)


def _run_all(request: ConsoleRequest, found: QuerySet[SavedCase]) -> None:
    """Those that do not run already; a worker sends their calls, one after the other."""
    waiting = found.exclude(last_run__state="open").select_related("tool__server")
    with recording(request):
        started, left = _start(waiting.order_by("pk")[:AT_ONCE], request.user)
    if started:
        said = ngettext("%d case was started.", "%d cases were started.", started)
        messages.success(request, said % started)
    if left:
        said = ngettext(
            "%d case was not: none of your agents may use its tool.",
            "%d cases were not: none of your agents may use their tools.",
            left,
        )
        messages.error(request, said % left)
    if not started and not left:
        messages.info(request, _("Every case is running already."))


def _start(found: Iterable[SavedCase], person: User) -> tuple[int, int]:
    """How many were started, and how many could not be."""
    started = left = 0
    for case in found:
        way = next(iter(ways_of(case.tool, person)), None)
        if way is None:
            left += 1
        else:
            runs.run_case(case, way, by=person)
            started += 1
    return started, left
