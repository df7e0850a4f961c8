"""Limits as a list, as pages with what was used of them, and as forms."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import Agent
from core.http import page
from policies.coverage import why_covers_nothing
from policies.forms.limits import LimitForm
from policies.limits import services, usage
from policies.limits.words import shown_measure
from policies.models import Limit, Rule
from policies.views.saving import save_form
from registry import managed
from registry.models import Server, Tool

# Of what the form offers while a name is typed.
OFFERED = 200


@page("policies.view_limit")
def limits(request: HttpRequest) -> HttpResponse:
    shown = Limit.objects.prefetch_related("agents", "owner_groups")
    context = {
        "section": "limits",
        "managed_by": managed.source_of(managed.LIMITS),
        "limits": [(limit, shown_measure(limit)) for limit in shown],
    }
    return render(request, "policies/limits.html", context)


@page("policies.view_limit")
def limit(request: HttpRequest, pk: int) -> HttpResponse:
    shown = get_object_or_404(Limit.objects.prefetch_related("agents", "owner_groups"), pk=pk)
    context = {
        "section": "limits",
        "managed_by": managed.source_of(managed.LIMITS),
        "limit": shown,
        "measure": shown_measure(shown),
        "covers_nothing": why_covers_nothing(shown),
        "usages": usage.of_limit(shown),
    }
    return render(request, "policies/limit.html", context)


@page("policies.add_limit", "GET", "HEAD", "POST")
def add_limit(request: ConsoleRequest) -> HttpResponse:
    asked = {name: request.GET[name][:200] for name in ("server", "tool") if request.GET.get(name)}
    return _form(request, Limit(**asked), initial={"per": [Limit.Per.AGENT]})


@page("policies.change_limit", "GET", "HEAD", "POST")
def edit_limit(request: ConsoleRequest, pk: int) -> HttpResponse:
    return _form(request, get_object_or_404(Limit, pk=pk))


@page("policies.change_limit", "GET", "HEAD", "POST")
def switch_limit(request: ConsoleRequest, pk: int) -> HttpResponse:
    """Disabling is confirmed; enabling is done at once."""
    shown = get_object_or_404(Limit, pk=pk)
    is_off = shown.mode == Rule.Mode.OFF
    if request.method != "POST":
        return render(request, "policies/limit_disable.html", _confirming(shown))
    enabled = request.POST.get("enabled") == "1"
    services.set_limit_enabled(shown, enabled, by=request.user.actor)
    said = _("“%s” is on.") if enabled else _("“%s” is off: it limits nothing.")
    if is_off == enabled:
        messages.success(request, said % shown.name)
    return redirect("policies:limit", pk)


@page("policies.delete_limit", "GET", "HEAD", "POST")
def remove_limit(request: ConsoleRequest, pk: int) -> HttpResponse:
    gone = get_object_or_404(Limit, pk=pk)
    if request.method == "POST":
        name = gone.name
        services.remove_limit(gone, by=request.user.actor)
        messages.success(request, _("“%s” is removed.") % name)
        return redirect("policies:limits")
    return render(request, "policies/limit_remove.html", _confirming(gone))


def _confirming(limit: Limit) -> dict[str, Any]:
    counted = usage.count_counters(limit)
    measure = shown_measure(limit)
    return {"section": "limits", "limit": limit, "measure": measure, "counted": counted}


@page("")
def agent_limits(request: ConsoleRequest, name: str) -> HttpResponse:
    """A piece for an agent's page: for whoever may see that."""
    shown = get_object_or_404(Agent.objects.visible_to(request.user), name=name)
    return render(request, "policies/agent_limits.html", {"usages": usage.of_agent(shown)})


def _form(
    request: ConsoleRequest, edited: Limit, initial: dict[str, Any] | None = None
) -> HttpResponse:
    form = LimitForm(request.POST or None, instance=edited, initial=initial)
    if (
        request.method == "POST"
        and form.is_valid()
        and save_form(form, services.save_limit, by=request.user.actor)
    ):
        messages.success(request, _("“%s” is saved.") % edited.name)
        return redirect("policies:limit", edited.pk)
    context = {
        "section": "limits",
        "managed_by": managed.source_of(managed.LIMITS),
        "form": form,
        "limit": edited if edited.pk else None,
        "servers": Server.objects.kept().order_by("slug").values_list("slug", flat=True)[:OFFERED],
        "tools": sorted(
            set(
                Tool.objects.filter(state=Tool.State.PUBLISHED)
                .order_by("name")
                .values_list("name", flat=True)[:OFFERED]
            )
        ),
    }
    return render(request, "policies/limit_form.html", context)
