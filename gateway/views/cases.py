"""A saved case: its arguments and expectations, its runs, and its schedule."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import User
from core import exact_json
from core.http import page
from core.outage import recording
from gateway.cases import comparison, runs, schedules, services
from gateway.models import SavedCase
from gateway.submit import try_call
from gateway.submit.try_call import TryRoute
from gateway.views.case_forms import CaseForm
from gateway.views.schedules import schedule_context
from registry.models import Tool
from registry.schema_forms import schema_form
from registry.schema_forms.violation_sentences import sentence
from registry.views.tool_pages import frame

Context = dict[str, Any]


@page(services.PERMISSION, "GET", "HEAD", "POST")
def case(request: ConsoleRequest, name: str, pk: int) -> HttpResponse:
    saved = _find(name, pk)
    ways = ways_of(saved.tool, request.user)
    context = frame(name, "try") | {"case": saved, "ways": ways, "action": request.path}
    if request.method == "POST":
        return _posted(request, context)
    context["form"] = schema_form.filled(_schema(context), bytes(saved.arguments))
    return _drawn(request, context, CaseForm(instance=saved))


def ways_of(tool: Tool, person: User) -> list[TryRoute]:
    return try_call.routes(tool, person) if try_call.is_offered(tool) else []


def _find(name: str, pk: int) -> SavedCase:
    found = SavedCase.objects.select_related("tool__server", "tool__published", "tool__latest")
    return get_object_or_404(found, tool__exposed_name=name, pk=pk)


def _schema(context: Context) -> dict[str, Any]:
    return try_call.schema(context["case"].tool, next(iter(context["ways"]), None))


def _posted(request: ConsoleRequest, context: Context) -> HttpResponse:
    saved: SavedCase = context["case"]
    schema = _schema(context)
    context["form"] = form = schema_form.posted(schema, request.POST)
    expectations = CaseForm(request.POST, instance=saved)
    is_valid = expectations.is_valid()
    if form.redraw or form.document is None or not form.ok or not is_valid:
        return _drawn(request, context, expectations)
    if exact_json.loads(form.document) != exact_json.loads(bytes(saved.arguments)):
        # Else the very bytes stay, which the form lays out anew.
        saved.arguments = form.document
    try:
        services.check_arguments(form.document, form.value, schema)
        with recording(request):
            services.change_case(saved, by=request.user)
    except services.CaseRefused as error:
        form.errors.append(str(error))
        return _drawn(request, context, expectations)
    if request.POST.get("do") == "run":
        return _run(request, saved)
    messages.success(request, _("“%s” is saved.") % saved.name)
    return redirect(request.path)


def _drawn(request: ConsoleRequest, context: Context, expectations: CaseForm) -> HttpResponse:
    saved: SavedCase = context["case"]
    history = list(saved.runs.select_related("call", "definition", "agent", "person"))
    runs.settle(history)
    context |= {
        "expectations": expectations,
        "history": comparison.history_rows(history),
        "is_open": any(run.is_open for run in history),
        "change": comparison.latest_change(history, request.user),
        "unfit": [*map(sentence, comparison.unfit(saved, next(iter(context["ways"]), None)))],
        **schedule_context(request.user, saved),
    }
    return render(request, "gateway/case.html", context)


@page(services.PERMISSION, "POST")
def run(request: ConsoleRequest, name: str, pk: int) -> HttpResponse:
    return _run(request, _find(name, pk))


def _run(request: ConsoleRequest, saved: SavedCase) -> HttpResponse:
    ways = ways_of(saved.tool, request.user)
    wanted = request.POST.get("agent", "")
    way = next((way for way in ways if way.agent.name == wanted), next(iter(ways), None))
    if way is None:
        messages.error(request, _("None of your agents may use this tool."))
    else:
        with recording(request):
            runs.run_case(saved, way, by=request.user, wait_s=try_call.WAIT_S)
    there = reverse("gateway:case", args=[saved.tool.exposed_name, saved.pk])
    return redirect(f"{there}#runs")


@page(services.PERMISSION, "GET", "HEAD", "POST")
def delete(request: ConsoleRequest, name: str, pk: int) -> HttpResponse:
    saved = _find(name, pk)
    if request.method == "POST":
        with recording(request), transaction.atomic():
            schedules.end_schedule(saved, by=request.user)
            services.delete_case(saved, by=request.user)
        messages.success(request, _("“%s” is deleted.") % saved.name)
        return redirect("gateway:try", name)
    context = {"case": saved, "count": saved.runs.count(), "schedule": schedules.find(saved)}
    return render(request, "gateway/case_delete.html", frame(name, "try") | context)
