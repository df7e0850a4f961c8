from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError

from accounts.http import ConsoleRequest
from core.http import is_htmx, page
from core.paging import paged
from registry.models import Item, Server
from registry.tasks import discover_server
from registry.views import catalogue_search as found
from registry.views import facets

LOOKS = 8
UNPUBLISHED_MAX = 100
SERVERS_MAX = 500


@page("registry.view_tool")
def catalogue(request: HttpRequest) -> HttpResponse:
    filtered = any(request.GET.get(name) for name in ("q", *facets.NAMES))
    shown = paged(found.tools(request.GET), "place", request.GET)
    context = {
        "section": "catalogue",
        "page": shown,
        "close": [] if shown.rows or not filtered else found.close(request.GET),
        "facets": facets.facets(request.GET),
        "filters": request.GET,
        "filtered": filtered,
        "narrowed": sum(bool(request.GET.get(name)) for name in facets.NAMES),
        # Said where everything is shown.
        "unpublished": 0 if filtered else _unpublished(),
    }
    part = "#found" if is_htmx(request) else ""
    return render(request, f"registry/catalogue.html{part}", context)


def _unpublished() -> int:
    return len(found.unpublished().values_list("pk")[:UNPUBLISHED_MAX])


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
    asked = get_object_or_404(Server, slug=slug)
    try:
        discover_server.apply_async((asked.pk,), retry=False)
    except OperationalError:
        messages.error(request, _("No worker can be reached. Try again in a minute."))
    else:
        messages.success(request, _("The server is being asked. Reload to read its answer."))
    return redirect("registry:server", slug)
