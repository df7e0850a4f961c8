from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError

from accounts.http import ConsoleRequest
from core.http import is_htmx, page
from core.paging import paged
from registry import methods
from registry.models import Item, Server, Tool, Toolset
from registry.tasks import discover_server
from registry.views import catalogue_search as found
from registry.views import facet_counts, facets
from registry.views.vouching import Vouching

LOOKS = 8
SERVERS_MAX = 500
# What the search within a facet goes on to ask for.
KEPT = ("q", "group", "all", *facets.NAMES)


@page("registry.view_tool")
def catalogue(request: HttpRequest) -> HttpResponse:
    filters = request.GET.dict()
    may_toolsets = request.user.has_perm("registry.view_toolset")
    if not may_toolsets:
        filters.pop("toolset", None)
    filtered = any(filters.get(name) for name in ("q", *facets.NAMES))
    shown = paged(found.tools(filters), "place", request.GET)
    close = [] if shown.rows or not filtered else found.close(filters)
    by_server = filters.get("group") == "server"
    toolsets = list(Toolset.objects.values_list("slug", flat=True)) if may_toolsets else []
    servers = list(Server.objects.kept().values_list("pk", "slug", "owner__username"))
    counts = facet_counts.count(filters, servers, toolsets)
    # Before the first measuring run every tool would look unused.
    is_measured = Tool.objects.filter(used_on__isnull=False).exists()
    context = {
        "section": "catalogue",
        "page": shown,
        "close": close,
        "toolsets_of": found.toolsets_of(shown.rows or close) if may_toolsets else {},
        "is_use_measured": is_measured,
        "facets": facets.facets(filters, counts, servers, toolsets, is_use_measured=is_measured),
        "filters": filters,
        "by_server": by_server,
        "groups": _group_tools(shown.rows or close, by_server=by_server),
        "kept": {name: filters[name] for name in KEPT if filters.get(name)},
        "filtered": filtered,
        "narrowed": sum(bool(filters.get(name)) for name in facets.NAMES),
        # Said where everything is shown.
        "unpublished": 0 if filtered else counts["state", "unpublished"],
    }
    part = "#found" if is_htmx(request) else ""
    return render(request, f"registry/catalogue.html{part}", context)


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """Tools under one heading; those that stand for methods are listed apart."""

    server: Server | None
    tools: list[Tool]
    methods: list[Tool]

    @property
    def n(self) -> int:
        return len(self.tools) + len(self.methods)


def _group_tools(tools: list[Tool], *, by_server: bool) -> list[ToolGroup]:
    """Servers in the order of their first tool, or one group of all."""
    found: dict[Server | None, ToolGroup] = {}
    for tool in tools:
        server = tool.server if by_server else None
        group = found.setdefault(server, ToolGroup(server, [], []))
        (group.methods if methods.is_one(tool.name) else group.tools).append(tool)
    return list(found.values())


@page("registry.view_server")
def servers(request: HttpRequest) -> HttpResponse:
    """Lists servers, those that need attention first."""
    context = {
        "section": "servers",
        "servers": found.servers().select_related("owner")[:SERVERS_MAX],
    }
    return render(request, "registry/servers.html", context)


@page("registry.view_server")
def server(request: HttpRequest, slug: str) -> HttpResponse:
    shown = get_object_or_404(found.server_of_page(), slug=slug)
    looks = list(shown.discoveries.all()[:LOOKS])
    vouching = Vouching(shown)
    kinds = list(found.kinds(shown))
    context = {
        "section": "servers",
        "server": shown,
        "page": paged(shown.tools.for_list(), "exposed_name", request.GET),
        "discoveries": looks,
        "toolsets": shown.toolsets.all(),
        "icon_problems": shown.icons.exclude(problem="").values_list("problem", flat=True),
        "vouching": vouching,
        "waits": vouching.waiting or any(waiting for _kind, _n, waiting in kinds),
        "kinds": [(Item.Kind(kind).label, n) for kind, n, _waiting in kinds],
    }
    return render(request, "registry/server.html", context)


@page("registry.view_server")
def items(request: HttpRequest, slug: str) -> HttpResponse:
    """The server's items, as listed now and as published."""
    shown = get_object_or_404(Server, slug=slug)
    context = {
        "section": "servers",
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
