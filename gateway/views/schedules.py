"""When a case, or the cases of a server, run by themselves."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import User
from core.http import page
from core.outage import recording
from gateway.cases import schedules, services
from gateway.models import SavedCase
from gateway.views.case_forms import CaseScheduleForm
from registry.models import Server


def schedule_context(person: User, target: SavedCase | Server) -> dict[str, Any]:
    """For gateway/case_schedule.html."""
    schedule = schedules.find(target)
    initial = {"every": schedule.every, "agent": schedule.agent.name} if schedule else None
    cases = schedules.cases_of(target)
    return {
        "schedule": schedule,
        "schedule_form": CaseScheduleForm(person=person, initial=initial),
        "risky": schedules.unconfirmed(cases),
        "left_out": schedules.left_out(schedule, cases) if schedule else [],
    }


@page(services.PERMISSION, "POST")
def schedule_case(request: ConsoleRequest, name: str, pk: int) -> HttpResponse:
    found = SavedCase.objects.select_related("tool__server")
    _set(request, get_object_or_404(found, tool__exposed_name=name, pk=pk))
    return redirect("gateway:case", name, pk)


@page(services.PERMISSION, "POST")
def schedule_server(request: ConsoleRequest, slug: str) -> HttpResponse:
    _set(request, get_object_or_404(Server.objects.kept(), slug=slug))
    return redirect("gateway:server_cases", slug)


def _set(request: ConsoleRequest, target: SavedCase | Server) -> None:
    form = CaseScheduleForm(request.POST, person=request.user)
    if not form.is_valid():
        messages.error(request, _("Choose one of your own active agents."))
        return
    given = form.cleaned_data
    try:
        with recording(request):
            if not given["every"]:
                schedules.end_schedule(target, by=request.user)
            else:
                schedules.set_schedule(
                    target,
                    given["every"],
                    agent=given["agent"],
                    confirmed=given["confirmed"],
                    by=request.user,
                )
    except schedules.ScheduleRefused as error:
        messages.error(request, str(error))
        return
    messages.success(request, _("The schedule is set.") if given["every"] else _("It is off."))
