"""Agents whose use is unusual, and one agent's, as a piece of its page."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from accounts.http import ConsoleRequest
from accounts.models import Agent
from core.http import page
from policies.history import LOOKED_AT
from policies.lookback import read_unusual
from policies.models import UnusualUse


@page("")
def unusual_agents(request: ConsoleRequest) -> HttpResponse:
    """Those that the person may see, as the list of agents."""
    rows = UnusualUse.objects.visible_to(request.user)[:200]
    return render(request, "policies/unusual.html", {"section": "agents", "rows": rows})


@page("")
def agent_unusual(request: ConsoleRequest, name: str) -> HttpResponse:
    """A piece for an agent's page: for whoever may see that."""
    shown = get_object_or_404(Agent.objects.visible_to(request.user), name=name)
    found = read_unusual(shown.pk)
    context = {
        "reasons": list(found.reasons()) if found else [],
        "is_unread": found is None,
        "is_flood": found is not None and found.is_flood,
        "most": LOOKED_AT,
    }
    return render(request, "policies/agent_unusual.html", context)
