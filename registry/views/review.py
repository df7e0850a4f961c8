"""Reviewing what servers offer and agents do not have yet, and publishing what was shown."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.http import ConsoleRequest
from core.http import page
from registry import services
from registry.models import Item, Server, Tool, Toolset
from registry.publishing.review import REVIEWS_MAX, Review, reviews, unreached
from registry.views.catalogue_search import toolsets_of

# Names of tools in one form.
LISTED = 200


class Reach(NamedTuple):
    """The toolsets that have a tool, and how many agents may use one of them."""

    toolsets: list[str]
    agents: int


@page("registry.operate_server", "GET", "HEAD", "POST")
def review(request: ConsoleRequest, slug: str) -> HttpResponse:
    """All that one server offers and agents do not have yet."""
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    return _answer(request, server, server.tools.all(), server.items.all())


@page("registry.operate_server", "GET", "HEAD", "POST")
def publish(request: ConsoleRequest, name: str) -> HttpResponse:
    """Publishes one tool's latest definition."""
    tool = get_object_or_404(Tool.objects.select_related("server"), exposed_name=name)
    only = Tool.objects.filter(pk=tool.pk)
    return _answer(request, tool.server, only, Item.objects.none(), tool)


def _answer(
    request: ConsoleRequest,
    server: Server,
    tools: QuerySet[Tool],
    items: QuerySet[Item],
    tool: Tool | None = None,
) -> HttpResponse:
    if request.method == "POST":
        done = _add(request, tools) if "toolset" in request.POST else _publish(request, server)
        there = redirect(request.path)
        there["Location"] += f"?done={','.join(map(str, sorted(done)[:LISTED]))}" if done else ""
        return there
    waiting = tools.waiting().count() + items.waiting().count()  # type: ignore[attr-defined]
    start = _start(request.GET.get("from", ""), waiting)
    shown = reviews(server, tools, items, start=start)
    context: dict[str, Any] = {
        "section": "catalogue" if tool else "servers",
        "server": server,
        "tool": tool,
        "reviews": shown,
        "reach": _reach(shown),
        "waiting": waiting,
        "first": start + 1,
        "last": min(start + REVIEWS_MAX, waiting),
        "before": start - REVIEWS_MAX if start else None,
        "after": start + REVIEWS_MAX if start + REVIEWS_MAX < waiting else None,
        "look": server.discoveries.first(),
        "all_toolsets": Toolset.objects.all(),
        **_steps(tools, request.GET.get("done", "")),
    }
    return render(request, "registry/review.html", context)


def _reach(shown: list[Review]) -> dict[int, Reach]:
    """By tool that agents had before it changed."""
    changed = [one.of for one in shown if isinstance(one.of, Tool) and one.before]
    if not changed:
        return {}
    toolsets = toolsets_of(changed)
    wanted = {slug for slugs in toolsets.values() for slug in slugs}
    enabled = Toolset.agents.through.objects.filter(
        toolset__slug__in=wanted, agent__enabled=True
    ).values_list("toolset__slug", "agent")
    agents: dict[str, set[int]] = defaultdict(set)
    for slug, agent in enabled:
        agents[slug].add(agent)
    return {
        tool.pk: Reach(slugs, len(set().union(*(agents[slug] for slug in slugs))))
        for tool in changed
        for slugs in [toolsets.get(tool.pk, [])]
    }


def _start(asked: str, waiting: int) -> int:
    """The first row of the page; of the last page, where fewer are left."""
    number = int(asked) if asked.isdecimal() and len(asked) < 7 else 0
    return min(number, max(waiting - 1, 0)) // REVIEWS_MAX * REVIEWS_MAX


def _steps(tools: QuerySet[Tool], done: str) -> dict[str, Any]:
    """The review steps after a publication: all that no agent gets, and what was just published."""
    missed = set(unreached(tools).values_list("pk", flat=True)[:LISTED])
    wanted = missed | {int(pk) for pk in done[:4000].split(",") if pk.isdecimal() and len(pk) < 10}
    published = tools.filter(pk__in=wanted, state=Tool.State.PUBLISHED).select_related("server")
    steps = [
        (tool, _toolsets(tool), tool.pk in missed)
        for tool in published.prefetch_related("toolsets", "server__toolsets")[:LISTED]
    ]
    return {"steps": steps, "missed": len(missed)}


def _toolsets(tool: Tool) -> list[Toolset]:
    have = {*tool.toolsets.all(), *tool.server.toolsets.all()}
    return sorted(have, key=lambda toolset: toolset.slug)


def _add(request: ConsoleRequest, tools: QuerySet[Tool]) -> set[int]:
    """Puts what was chosen into a toolset."""
    if not request.user.has_perm("registry.change_toolset"):
        raise PermissionDenied
    toolset = get_object_or_404(Toolset, slug=request.POST["toolset"])
    wanted = [pk for pk in request.POST.getlist("tool") if pk.isdecimal() and len(pk) < 10]
    chosen = tools.filter(pk__in=wanted, state=Tool.State.PUBLISHED)
    with transaction.atomic():
        for tool in chosen:
            services.add_tool(toolset, tool, by=request.user)
    said = _("In “%(toolset)s” now: %(n)d.") % {"toolset": toolset, "n": len(chosen)}
    if not toolset.agents.filter(enabled=True).exists():
        said += " " + _("No agent may use this toolset: choose agents on its page.")
    messages.success(request, said)
    return {tool.pk for tool in chosen}


def _publish(request: ConsoleRequest, server: Server) -> set[int]:
    """Publishes exactly the differences on the page, each by its digest. Returns chosen tools."""
    tools, items = _reviewed(request, "digest-"), _reviewed(request, "item-")
    if not tools and not items:
        messages.error(request, _("Nothing was chosen, so nothing is published."))
    before = _published(server)
    refused = [
        *services.publish_all(
            server,
            by=request.user,
            differences=tools,
            reasons=_reviewed(request, "reason-digest-"),
        ),
        *services.publish_items(
            server,
            by=request.user,
            differences=items,
            reasons=_reviewed(request, "reason-item-"),
        ),
    ]
    for refusal in refused:
        messages.error(request, refusal)
    count = _published(server) - before
    if count <= 0 and not refused and (tools or items):
        messages.error(request, _("What you chose is published already."))
    if count > 0:
        missed = unreached(server.tools.filter(pk__in=tools)).count()
        messages.success(request, _sentence(count, missed))
    return set(tools)


def _sentence(count: int, missed: int) -> str:
    if not missed:
        return _("Published: %d. Agents get them now.") % count
    nobody = (
        ngettext(
            "No agent gets it: no toolset of an agent has it.",
            "No agent gets them: no toolset of an agent has them.",
            missed,
        )
        if missed == count
        else ngettext(
            "No agent gets %d of them: no toolset of an agent has it.",
            "No agent gets %d of them: no toolset of an agent has them.",
            missed,
        )
        % missed
    )
    return f"{_('Published: %d.') % count} {nobody}"


def _reviewed(request: ConsoleRequest, prefix: str) -> dict[int, str]:
    """By row, the digest of the difference that was on the page, or the reason that was typed."""
    return {
        int(name.removeprefix(prefix)): str(value)
        for name, value in request.POST.items()
        if name.startswith(prefix) and name.removeprefix(prefix).isdecimal()
    }


def _published(server: Server) -> int:
    tools = server.tools.filter(state=Tool.State.PUBLISHED).count()
    return tools + server.items.filter(state=Item.State.PUBLISHED).count()
