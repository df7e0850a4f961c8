from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _
from kombu.exceptions import OperationalError

from accounts.http import ConsoleRequest
from core.http import page
from core.paging import paged
from core.templatetags.console import pretty
from core.text import hidden_count
from registry import catalogue as found
from registry import services
from registry.arguments import rows
from registry.models import Definition, Server, Tool
from registry.tasks import discover_server

HINTS = [
    ("reads", _("reads only")),
    ("destructive", _("may destroy")),
    ("open", _("reaches outside")),
    ("repeats", _("same when repeated")),
]
STATES = [("unpublished", _("Waiting to be published")), *Tool.State.choices]
LOOKS = 8


@page("registry.view_tool")
def catalogue(request: HttpRequest) -> HttpResponse:
    context = {
        "section": "catalogue",
        "page": paged(found.tools(request.GET), "exposed_name", request.GET),
        "servers": found.servers(),
        "filters": request.GET,
        "filtered": any(request.GET.get(name) for name in ("q", "server", "hint", "state")),
        "unpublished": found.tools({"state": "unpublished"}).count(),
        "hints": HINTS,
        "states": STATES,
    }
    return render(request, "registry/catalogue.html", context)


@page("registry.view_server")
def server(request: HttpRequest, slug: str) -> HttpResponse:
    tools = Tool.objects.for_catalogue().order_by("exposed_name")
    shown = get_object_or_404(
        Server.objects.select_related("owner").prefetch_related(Prefetch("tools", tools)), slug=slug
    )
    context = {
        "section": "catalogue",
        "server": shown,
        "tools": shown.tools.all(),
        "discoveries": shown.discoveries.all()[:LOOKS],
    }
    return render(request, "registry/server.html", context)


@page("registry.view_tool")
def tool(request: HttpRequest, name: str) -> HttpResponse:
    shown = get_object_or_404(Tool.objects.for_catalogue(), exposed_name=name)
    definition = _definition(shown, request.GET.get("version", ""))
    content: dict[str, Any] = definition.content
    context = {
        "section": "catalogue",
        "tool": shown,
        "definition": definition,
        "arguments": rows(_schema(content, "inputSchema")),
        "output": rows(_schema(content, "outputSchema")),
        "versions": shown.definitions.all(),
        # Parsed and written again: in the server's JSON they may stand as \\u200b.
        "hidden": hidden_count(pretty(content)),
    }
    return render(request, "registry/tool.html", context)


@page("registry.operate_server", "POST")
def publish(request: ConsoleRequest, name: str) -> HttpResponse:
    shown = get_object_or_404(Tool.objects.for_catalogue(), exposed_name=name)
    try:
        services.publish(shown, digest=request.POST.get("digest", ""), by=request.user)
    except services.PublicationRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("“%s” is published: agents get it now.") % name)
    return redirect("registry:tool", name)


@page("registry.operate_server", "POST")
def refresh(request: ConsoleRequest, slug: str) -> HttpResponse:
    asked = get_object_or_404(Server, slug=slug)
    try:
        discover_server.apply_async((asked.pk,), retry=False)
    except OperationalError:
        messages.error(request, _("No worker can be reached. Try again in a minute."))
    else:
        messages.success(request, _("The server is being asked. Reload to read its answer."))
    return redirect("registry:server", slug)


def _definition(shown: Tool, version: str) -> Definition:
    if version.isdecimal():
        return get_object_or_404(shown.definitions, version=int(version))
    if shown.latest is None:
        raise Http404
    return shown.latest


def _schema(content: dict[str, Any], name: str) -> dict[str, Any]:
    schema = content.get(name)
    return schema if isinstance(schema, dict) else {}
