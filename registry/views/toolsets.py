"""Toolsets: what is in them, who may use them, and how a client connects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import orjson
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Model, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import MAX_HOLD_S, Agent
from core.http import is_htmx, page
from core.paging import paged
from registry import managed, services
from registry.forms.toolsets import ToolsetForm
from registry.models import OwnTool, RegistryReaders, Separator, Server, Tool, Toolset
from registry.publishing import agent_names, override_service, published_catalogue, tool_lists
from registry.views import client_snippets
from registry.views.overrides import previews

SHOWN = 200
# Of tool_lists.FORMATS, as people know them.
FORMATS = [
    ("mcp", "MCP"),
    ("openai", "OpenAI"),
    ("anthropic", "Anthropic"),
    ("gemini", "Gemini"),
    ("json-schema", "JSON Schema"),
]
FOUND = 40


@page("registry.view_toolset")
def toolsets(request: ConsoleRequest) -> HttpResponse:
    shown = Toolset.objects.annotate(
        servers_in=Count("servers", distinct=True),
        tools_in=Count("tools", distinct=True),
        agents_in=Count("agents", distinct=True),
    )
    context = {"section": "toolsets", "page": paged(shown, "slug", request.GET)}
    return render(request, "registry/toolsets.html", context)


@page("registry.add_toolset", "GET", "HEAD", "POST")
def add_toolset(request: ConsoleRequest) -> HttpResponse:
    form = ToolsetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = services.create_toolset(**form.cleaned_data, by=request.user)
        messages.success(request, _("“%s” is there. Choose what is in it.") % made)
        return redirect("registry:toolset", made.slug)
    return render(request, "registry/toolset_add.html", {"section": "toolsets", "form": form})


@page("registry.view_toolset")
def toolset(request: ConsoleRequest, slug: str) -> HttpResponse:
    shown = get_object_or_404(Toolset, slug=slug)
    may_change = request.user.has_perm("registry.change_toolset")
    words = request.GET.get("q", "").strip()
    offered, names = override_service.offered_of(shown), override_service.names_of(shown)
    context = {
        "section": "toolsets",
        "toolset": shown,
        "endpoint": client_snippets.endpoint(shown),
        "names": previews(shown, list(offered[:SHOWN]), names),
        "more": offered[SHOWN : SHOWN + 1].exists(),
        "doubled": offered.filter(pk__in=names.doubled)[:SHOWN],
        "separators": Separator.choices,
        "registry_readers": RegistryReaders.choices,
        "registry_url": f"{settings.PUBLIC_URL}/api/registry/{shown.slug}",
        "formats": FORMATS,
        "max_hold_s": MAX_HOLD_S,
        "managed_by": managed.source_of(managed.TOOLSETS, shown.slug),
        "usual_hold_s": settings.HOLD_S,
        "prefix": max(client_snippets.PREFIXES.values(), key=len),
        "servers": _marked(Server.objects.kept(), shown.servers.all()),
        "agents": _marked(Agent.objects.visible_to(request.user), shown.agents.all()),
        "single": shown.tools.select_related("server").order_by("exposed_name"),
        "own": [
            (own, agent_names.own(own.value, shown.separator), own.value in shown.own_tools)
            for own in OwnTool
        ],
        "q": words,
        "found": _by_server(_addable(shown, words)) if may_change and words else [],
    }
    return render(request, "registry/toolset.html", context)


@page("registry.view_toolset")
def tool_list(request: ConsoleRequest, slug: str) -> HttpResponse:
    """Its tools as a file, in the form that a model's API takes."""
    get_object_or_404(Toolset, slug=slug)
    form = request.GET.get("format", "mcp")
    published = published_catalogue.load().toolset(slug)
    if form not in tool_lists.FORMATS or published is None:
        raise Http404
    found = tool_lists.tool_list(published, form).plain(slug)
    response = HttpResponse(orjson.dumps(found, option=orjson.OPT_INDENT_2), "application/json")
    response["Content-Disposition"] = f'attachment; filename="{slug}.{form}.json"'
    return response


@page("registry.view_toolset")
def connect(request: ConsoleRequest, slug: str) -> HttpResponse:
    shown = get_object_or_404(Toolset, slug=slug)
    context = {"section": "toolsets", "toolset": shown, **_connecting(shown)}
    return render(request, "registry/connect.html", context)


@page("registry.change_toolset", "POST")
def set_title(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    services.set_title(changed, request.POST.get("title", "").strip()[:200], by=request.user)
    return redirect("registry:toolset", slug)


@page("registry.change_toolset", "POST")
def set_separator(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    wanted = request.POST.get("separator", "")
    if wanted in Separator.values:
        services.set_separator(changed, wanted, by=request.user)
        messages.success(request, _("The names in “%s” are as chosen.") % changed)
    return redirect("registry:toolset", slug)


@page("registry.change_toolset", "POST")
def set_hold(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    written = request.POST.get("seconds", "").strip()
    try:
        services.set_hold(changed, int(written) if written else None, by=request.user)
        messages.success(request, _("Agents of “%s” are answered as chosen.") % changed)
    except (ValueError, services.RegistrationRefused):
        messages.error(request, _("The first answer comes within 1 to %d seconds.") % MAX_HOLD_S)
    return redirect("registry:toolset", slug)


@page("registry.change_toolset", "POST")
def set_search_mode(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    services.set_search_mode(changed, request.POST.get("mode") == "search", by=request.user)
    messages.success(request, _("Agents of “%s” get its tools as chosen.") % changed)
    return redirect("registry:toolset", slug)


@page("registry.change_toolset", "POST")
def set_agent_sign_in(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    services.set_agent_sign_in(changed, request.POST.get("sign_in") == "on", by=request.user)
    messages.success(request, _("Sign-in of agents to “%s” is as chosen.") % changed)
    return redirect("registry:toolset", slug)


@page("registry.change_toolset", "POST")
def set_registry_readers(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    wanted = request.POST.get("readers", "")
    if wanted in RegistryReaders.values:
        services.set_registry_readers(changed, wanted, by=request.user)
        messages.success(request, _("The registry of “%s” is read as chosen.") % changed)
    return redirect("registry:toolset", slug)


@page("registry.change_toolset", "POST")
def set_own_tools(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    known = [name for name in request.POST.getlist("own") if name in OwnTool.values]
    services.set_own_tools(changed, known, by=request.user)
    messages.success(request, _("The tools for own calls of “%s” are as chosen.") % changed)
    return redirect("registry:toolset", slug)


@page("registry.change_toolset", "POST")
def set_servers(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    wanted = Server.objects.kept().filter(pk__in=_ids(request, "server"))
    with transaction.atomic():
        _change(
            changed,
            Server.objects.kept(),
            changed.servers.all(),
            wanted,
            services.add_server,
            services.remove_server,
            request,
        )
    messages.success(request, _("The servers of “%s” are as chosen.") % changed)
    return redirect("registry:toolset", slug)


@page("registry.change_toolset", "POST")
def set_agents(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    visible = Agent.objects.visible_to(request.user)
    wanted = visible.filter(pk__in=_ids(request, "agent"))
    with transaction.atomic():
        _change(
            changed,
            visible,
            changed.agents.all(),
            wanted,
            services.assign,
            services.unassign,
            request,
        )
    messages.success(request, _("The agents of “%s” are as chosen.") % changed)
    return redirect("registry:toolset", slug)


def _change(
    changed: Toolset,
    choices: QuerySet[Any],
    now: QuerySet[Any],
    wanted: QuerySet[Any],
    join: Callable[..., None],
    part: Callable[..., None],
    request: ConsoleRequest,
) -> None:
    """Only what was offered to choose from is taken away."""
    members, asked = set(now.values_list("pk", flat=True)), set(wanted.values_list("pk", flat=True))
    for one in choices.filter(pk__in=asked - members):
        join(changed, one, by=request.user)
    for one in choices.filter(pk__in=members - asked):
        part(changed, one, by=request.user)


@page("registry.change_toolset", "POST")
def add_tools(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    with transaction.atomic():
        for tool in Tool.objects.filter(pk__in=_ids(request, "tool")):
            services.add_tool(changed, tool, by=request.user)
    return redirect("registry:toolset", slug)


@page("registry.change_toolset", "POST")
def remove_tools(request: ConsoleRequest, slug: str) -> HttpResponse:
    changed = get_object_or_404(Toolset, slug=slug)
    with transaction.atomic():
        for tool in changed.tools.filter(pk__in=_ids(request, "tool")):
            services.remove_tool(changed, tool, by=request.user)
    return redirect("registry:toolset", slug)


@page("", "GET", "HEAD", "POST")
def agent_toolsets(request: ConsoleRequest, name: str) -> HttpResponse:
    """The toolsets part of an agent's page, and a page of its own without JavaScript."""
    agent = get_object_or_404(Agent.objects.visible_to(request.user), name=name)
    if request.method == "POST":
        return _set_toolsets(request, agent)
    context = {
        "section": "agents",
        "agent": agent,
        "toolsets": _marked(Toolset.objects.all(), Toolset.objects.filter(agents=agent)),
    }
    whole = "registry/agent_toolsets.html"
    return render(request, f"{whole}#choice" if is_htmx(request) else whole, context)


def _set_toolsets(request: ConsoleRequest, agent: Agent) -> HttpResponse:
    if not request.user.has_perm("registry.change_toolset"):
        raise PermissionDenied
    wanted = _ids(request, "toolset")
    with transaction.atomic():
        for one in Toolset.objects.all():
            verb = services.assign if one.pk in wanted else services.unassign
            verb(one, agent, by=request.user)
    messages.success(request, _("The toolsets of “%s” are as chosen.") % agent)
    return redirect("accounts:agent", agent.name)


@page("")
def agent_connect(request: ConsoleRequest, name: str) -> HttpResponse:
    agent = get_object_or_404(Agent.objects.visible_to(request.user), name=name)
    usable = list(Toolset.objects.filter(agents=agent))
    context: dict[str, Any] = {"section": "agents", "agent": agent, "toolsets": usable}
    if usable:
        chosen = next((one for one in usable if one.slug == request.GET.get("toolset")), usable[0])
        others = [(one.slug, client_snippets.endpoint(one)) for one in usable if one != chosen]
        context |= {"toolset": chosen, "others": others, **_connecting(chosen)}
    whole = "registry/agent_connect.html"
    return render(request, f"{whole}#how" if is_htmx(request) else whole, context)


def _connecting(shown: Toolset) -> dict[str, Any]:
    url = client_snippets.endpoint(shown)
    return {
        "endpoint": url,
        "snippets": client_snippets.snippets(url),
        "export": client_snippets.EXPORT,
    }


def _addable(shown: Toolset, words: str) -> QuerySet[Tool]:
    fitting = Tool.objects.exclude(state=Tool.State.RETIRED).select_related("server")
    for word in words.split():
        fitting = fitting.filter(exposed_name__icontains=word)
    fitting = fitting.exclude(server__in=shown.servers.all())
    return fitting.exclude(pk__in=shown.tools.values("pk")).order_by("exposed_name")[:FOUND]


def _by_server(tools: Iterable[Tool]) -> list[tuple[Server, list[Tool]]]:
    return [(server, list(group)) for server, group in groupby(tools, key=lambda t: t.server)]


def _marked(choices: QuerySet[Any], chosen: QuerySet[Any]) -> list[tuple[Model, bool]]:
    members = set(chosen.values_list("pk", flat=True))
    return [(one, one.pk in members) for one in choices]


def _ids(request: ConsoleRequest, name: str) -> set[int]:
    given = request.POST.getlist(name)
    return {int(one) for one in given if one.isascii() and one.isdecimal() and len(one) < 19}
