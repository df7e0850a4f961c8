"""“What would happen if”: a page, and the same as a piece of a tool's page."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from accounts.http import ConsoleRequest
from accounts.models import Agent
from accounts.oidc.access_tokens import token_group_names
from core.http import page
from core.text import revealed
from policies.picks import exposed_tools
from policies.simulate import SimulationRefused, suppose
from registry.models import Toolset

# A page is asked by GET: addresses end somewhere.
ARGUMENTS_MAX = 4000


@page("policies.view_rule")
def explain(request: ConsoleRequest) -> HttpResponse:
    context = _context(request, request.GET.get("tool", ""))
    context |= {"section": "rules", "tools": exposed_tools("")}
    return render(request, "policies/explain.html", context)


@page("policies.view_rule")
def evaluate(request: ConsoleRequest, tool: str) -> HttpResponse:
    """A piece for a tool's page, which asks about itself again and draws itself anew."""
    return render(request, "policies/would.html", _context(request, tool))


def _context(request: ConsoleRequest, tool: str) -> dict[str, Any]:
    agents = list(Agent.objects.values_list("name", flat=True))
    agent = request.GET.get("agent", "")
    groups = token_group_names()
    context: dict[str, Any] = {
        "agents": agents,
        "agent": agent,
        "tool": tool,
        "arguments": request.GET.get("arguments", "")[:ARGUMENTS_MAX],
        "toolset": request.GET.get("toolset", ""),
        "toolsets": list(Toolset.objects.order_by("slug").values_list("slug", flat=True)),
        "token_groups": groups,
        "token_group": [one for one in request.GET.getlist("token_group") if one in groups],
    }
    return context | _answer(context) if agent and tool else context


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    try:
        by = (asked["agent"], asked["tool"], asked["arguments"])
        more = {"toolset": asked["toolset"], "token_groups": asked["token_group"]}
        return {"explained": suppose(*by, **more)}
    except SimulationRefused as error:
        return {"error": revealed(str(error))}
