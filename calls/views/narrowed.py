"""Charts of the calls of one agent, server or rule: the overview's, of these calls alone."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import Agent
from calls.views.narrowed_figures import read_narrowed
from calls.views.range_charts import draw_range
from core.http import page
from policies.models import Rule
from registry.models import Server


@page("calls.view_call")
def of_agent(request: ConsoleRequest, name: str) -> HttpResponse:
    agent = get_object_or_404(Agent, name=name)
    context = {
        "section": "agents",
        "parents": [_settings(), (_("Agents"), reverse("accounts:agents"))],
        "address": reverse("accounts:agent", args=[name])
        if Agent.objects.visible_to(request.user).filter(pk=agent.pk).exists()
        else "",
        "calls": f"{reverse('calls:list')}?agent={name}",
    }
    return _show(request, "agent", agent, context, agent=name)


@page("calls.view_call")
def of_server(request: ConsoleRequest, slug: str) -> HttpResponse:
    if not request.user.has_perm("registry.view_server"):
        raise PermissionDenied
    context = {
        "section": "servers",
        "parents": [
            (_("Catalogue"), reverse("registry:catalogue")),
            (_("Servers"), reverse("registry:servers")),
        ],
        "address": reverse("registry:server", args=[slug]),
    }
    return _show(request, "server", get_object_or_404(Server, slug=slug), context)


@page("calls.view_call")
def of_rule(request: ConsoleRequest, pk: int) -> HttpResponse:
    if not request.user.has_perm("policies.view_rule"):
        raise PermissionDenied
    rules = reverse("policies:rules")
    context = {
        "section": "rules",
        "parents": [_settings(), (_("Policies"), rules)],
        "address": f"{rules}#rule-{pk}",
    }
    return _show(request, "rule", get_object_or_404(Rule, pk=pk), context)


def _settings() -> tuple[str, str]:
    return _("Settings"), reverse("accounts:settings")


def _show(
    request: ConsoleRequest, kind: str, one: Model, context: dict[str, Any], **listed: str
) -> HttpResponse:
    """`listed`: the filter under which the list of calls has them; none where it has no such."""
    drawn = draw_range(
        request.GET.get("range", ""),
        request.user,
        lambda edges, now: read_narrowed(kind, one.pk, edges, now),
        listed if kind == "agent" else None,
    )
    context |= {"kind": kind, "one": one, "name": str(getattr(one, "slug", "") or one), **drawn}
    return render(request, "calls/narrowed.html", context)
