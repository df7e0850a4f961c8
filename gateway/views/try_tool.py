"""The Try tab of a tool's page."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from calls.models import Call
from calls.views import call_page
from core.errors import CountersignError, RecordUnavailable
from core.http import is_htmx, page
from core.outage import Recorded, note, recording
from gateway.cases import runs
from gateway.cases import services as cases
from gateway.submit import try_call
from gateway.submit.try_call import Expected, TryRoute
from registry.models import Tool
from registry.schema_forms import schema_form
from registry.schema_forms.schema_form import SchemaForm
from registry.views.tool_pages import frame

Context = dict[str, Any]


@page("registry.view_tool", "GET", "HEAD", "POST")
def try_tool(request: ConsoleRequest, name: str) -> HttpResponse:
    context = frame(name, "try")
    tool: Tool = context["tool"]
    ways = try_call.routes(tool, request.user) if try_call.is_offered(tool) else []
    way = _chosen(ways, request)
    context |= {"ways": ways, "way": way, "action": request.path, "tried": []}
    context["tried"] = try_call.tried(tool, request.user)
    if request.user.has_perm(cases.PERMISSION):
        context["cases"] = list(tool.cases.select_related("tool", "last_run__call"))
        runs.settle_shown(context["cases"])
    if request.method == "POST" and way is not None:
        return _posted(request, context, way)
    return render(request, "gateway/try.html", context | _form_context(request, tool, way))


def _posted(request: ConsoleRequest, context: Context, way: TryRoute) -> HttpResponse:
    tool: Tool = context["tool"]
    form = schema_form.posted(try_call.schema(tool, way), request.POST)
    context |= {"form": form}
    if form.redraw or form.document is None or not form.ok:
        return _drawn(request, context)
    try:
        expected = try_call.expect(tool, way, form.document, form.value)
        form.show(expected.violations)
        if request.POST.get("do") == "look" or expected.violations or expected.decision is None:
            return _drawn(request, context | _looked(way, form, expected))
        if request.POST.get("do") == "save":
            return _saved(request, tool, way, form)
        with recording(request):
            submitted = try_call.send(tool, way, form.document, form.value)
        note(request, Recorded.YES, submitted.call_id)
    except RecordUnavailable:
        raise
    except CountersignError as error:
        form.errors.append(str(error))
        return _drawn(request, context)
    there = reverse("gateway:try", args=[tool.exposed_name])
    return redirect(f"{there}?call={submitted.call_id}#outcome")


def _saved(request: ConsoleRequest, tool: Tool, way: TryRoute, form: SchemaForm) -> HttpResponse:
    """The page of the new case, where it gets its name and expectations."""
    if not request.user.has_perm(cases.PERMISSION):
        raise PermissionDenied
    schema = try_call.schema(tool, way)
    assert form.document is not None
    with recording(request):
        case = cases.add_case(tool, form.document, form.value, schema=schema, by=request.user)
    messages.success(request, _("Saved. Say what is expected of the result."))
    return redirect("gateway:case", tool.exposed_name, case.pk)


def _drawn(request: HttpRequest, context: Context) -> HttpResponse:
    part = "#trying" if is_htmx(request) else ""
    return render(request, f"gateway/try.html{part}", context)


def _looked(way: TryRoute, form: SchemaForm, expected: Expected) -> Context:
    found: Context = {"expected": None if expected.violations else expected}
    return found | _as_sent(way, form.document or b"{}")


def _as_sent(way: TryRoute, document: bytes) -> Context:
    return {
        "json_rpc": try_call.json_rpc(way, document),
        "curl": try_call.curl(way, document),
    }


def _form_context(request: ConsoleRequest, tool: Tool, way: TryRoute | None) -> Context:
    """An empty form, or one with the arguments of an earlier try and what came of it."""
    picture = _picture(request, tool)
    if picture is None:
        return {"form": schema_form.filled(try_call.schema(tool, way))}
    call: Call = picture["call"]
    document = try_call.own(way, bytes(call.arguments))
    context = picture | {"form": schema_form.filled(try_call.schema(tool, way), document)}
    context["may_cancel"] = call_page.may_cancel(call, request.user)
    return context | (_as_sent(way, document) if way else {})


def _picture(request: ConsoleRequest, tool: Tool) -> Context | None:
    try:
        call_id = UUID(request.GET.get("call", ""))
    except ValueError:
        return None
    picture = call_page.of_call(call_id, request.user)
    if picture is None or not picture["may_read"] or picture["call"].tool_id != tool.pk:
        return None
    return picture


def _chosen(ways: list[TryRoute], request: HttpRequest) -> TryRoute | None:
    name = request.POST.get("agent") or request.GET.get("agent", "")
    return next((way for way in ways if way.agent.name == name), ways[0] if ways else None)
