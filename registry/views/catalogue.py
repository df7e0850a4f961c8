from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError

from accounts.http import ConsoleRequest
from core.http import is_htmx, page
from core.paging import paged
from registry.models import Item, Server, Toolset
from registry.tasks import discover_server
from registry.views import catalogue_search as found
from registry.views import facets

LOOKS = 8
SERVERS_MAX = 500


@page("registry.view_tool")
def catalogue(request: HttpRequest) -> HttpResponse:
    filters = request.GET.dict()
    may_toolsets = request.user.has_perm("registry.view_toolset")
    if not may_toolsets:
        filters.pop("toolset", None)
    filtered = any(filters.get(name) for name in ("q", *facets.NAMES))
    shown = paged(found.tools(filters), "place", request.GET)
    close = [] if shown.rows or not filtered else found.close(filters)
    toolsets = list(Toolset.objects.values_list("slug", flat=True)) if may_toolsets else []
    counts = facets.count(filters, toolsets)
    context = {
        "section": "catalogue",
        "page": shown,
        "close": close,
        "toolsets_of": found.toolsets_of(shown.rows or close) if may_toolsets else {},
        "facets": facets.facets(filters, counts, toolsets),
        "filters": filters,
        "filtered": filtered,
        "narrowed": sum(bool(filters.get(name)) for name in facets.NAMES),
        # Said where everything is shown.
        "unpublished": 0 if filtered else counts["state", "unpublished"],
    }
    part = "#found" if is_htmx(request) else ""
    return render(request, f"registry/catalogue.html{part}", context)


@page("registry.view_server")
def servers(request: HttpRequest) -> HttpResponse:
    """Lists servers, those that need attention first."""
    context = {
        "section": "catalogue",
        "servers": found.servers().select_related("owner")[:SERVERS_MAX],
    }
    return render(request, "registry/servers.html", context)


@page("registry.view_server")
def server(request: HttpRequest, slug: str) -> HttpResponse:
    shown = get_object_or_404(Server.objects.select_related("owner"), slug=slug)
    looks = list(shown.discoveries.all()[:LOOKS])
    context = {
        "section": "catalogue",
        "server": shown,
        "page": paged(shown.tools.for_list(), "exposed_name", request.GET),
        "discoveries": looks,
        "toolsets": shown.toolsets.all(),
        "waits": shown.tools.waiting().exists() or shown.items.waiting().exists(),
        "kinds": [(Item.Kind(kind).label, n) for kind, n in found.kinds(shown)],
    }
    return render(request, "registry/server.html", context)


@page("registry.view_server")
def items(request: HttpRequest, slug: str) -> HttpResponse:
    """The server's items, as listed now and as published."""
    shown = get_object_or_404(Server, slug=slug)
    context = {
        "section": "catalogue",
        "server": shown,
        "page": paged(found.items(shown), "place", request.GET),
        "waits": shown.items.waiting().exists(),
    }
    return render(request, "registry/items.html", context)


@page("registry.operate_server", "POST")
def refresh(request: ConsoleRequest, slug: str) -> HttpResponse:
    asked = get_object_or_404(Server.objects.kept(), slug=slug)
    try:
        discover_server.apply_async((asked.pk,), retry=False)
    except OperationalError:
        messages.error(request, _("No worker can be reached. Try again in a minute."))
    else:
        messages.success(request, _("The server is being asked. Reload to read its answer."))
    return redirect("registry:server", slug)
