"""The page after sign-in: what needs people, and how calls went lately."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.http import ConsoleRequest
from accounts.models import User
from approvals.context import count_waiting
from approvals.pending import find_decidable
from calls.views import range_charts
from calls.views.range_figures import TopCaller, read_figures
from config import checklist
from config.needs import list_needs
from core.http import page

# Each with the name of one, its page, and who may see that.
_TOPS = (
    ("tool", _("Top tools"), _("Tool"), "calls:usage", "calls.view_call"),
    ("agent", _("Top agents"), _("Agent"), "calls:list", "calls.view_call"),
    ("server", _("Top servers"), _("Server"), "registry:server", "registry.view_server"),
)


class CallerLink(NamedTuple):
    caller: TopCaller
    address: str


class TopList(NamedTuple):
    kind: str
    title: Any
    one: Any
    callers: list[CallerLink]


@page("")
def home(request: ConsoleRequest) -> HttpResponse:
    """Leads to the queue whoever has something to decide, and others to the overview."""
    return redirect("approvals:queue" if find_decidable(request.user).count else "overview")


@page("calls.view_call")
def overview(request: ConsoleRequest) -> HttpResponse:
    facts = checklist.read_facts()
    mine = find_decidable(request.user)
    steps = list(checklist.list_items(facts, request.user))
    context: dict[str, Any] = {
        "section": "overview",
        "facts": facts,
        "needs": list(list_needs(facts, mine, count_waiting(), request.user)),
        "checklist": steps,
        "done": sum(step.is_done for step in steps),
        # Those who can do nothing about it are not told what is missing.
        "lacks": any(step.address and not step.is_done for step in steps),
    }
    if facts.has_call:
        context |= _charts(request)
    return render(request, "overview.html", context)


def _charts(request: ConsoleRequest) -> dict[str, Any]:
    drawn = range_charts.draw_range(
        request.GET.get("range", ""), request.user, read_figures, listed={}
    )
    return drawn | {"tops": list(_tops(drawn["figures"].tops, request.user))}


def _tops(tops: dict[str, list[TopCaller]], person: User) -> Iterator[TopList]:
    for kind, title, one, address, permission in _TOPS:
        if tops[kind] and person.has_perm(permission):
            callers = [CallerLink(caller, _address(kind, address, caller)) for caller in tops[kind]]
            yield TopList(kind, title, one, callers)


def _address(kind: str, address: str, caller: TopCaller) -> str:
    if kind == "agent":
        return f"{reverse(address)}?{urlencode({'agent': caller.name})}"
    return reverse(address, args=[caller.name])
