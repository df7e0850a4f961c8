"""Rules as a list that people read from top to bottom, and as forms."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core.http import page
from policies import services
from policies.coverage import covered, covered_tools, nevers, shadows, unmet
from policies.feasibility import why_unmeetable
from policies.forms.rules import RuleForm
from policies.models import Effect, Rule
from policies.thresholds import DEFAULT, deciders
from policies.views.saving import save_form

COVERING = ("server", "tool", "hint")


@page("policies.view_rule")
def rules(request: HttpRequest) -> HttpResponse:
    shown = list(Rule.objects.in_order().prefetch_related("agents", "owner_groups"))
    never, able, tools = nevers(shown), deciders(), covered_tools(shown)
    unmeetable = unmet(shown, able, tools)
    context = {
        "section": "rules",
        "rules": [
            (rule, overlap, never.get(rule.pk, ""), unmeetable.get(rule.pk, ""))
            for rule, overlap in zip(shown, shadows(shown, tools), strict=True)
        ],
        "nobody": why_unmeetable(DEFAULT, able),
        "moved": request.GET.get("moved", ""),
        "way": request.GET.get("way", ""),
    }
    return render(request, "policies/rules.html", context)


@page("policies.view_rule")
def covers(request: HttpRequest) -> HttpResponse:
    """How many published tools the patterns in the form cover, while they are typed."""
    given = {name: request.GET.get(name, "")[:200] for name in COVERING}
    return render(request, "policies/covers.html", {"covers": _count(given)})


@page("policies.add_rule", "GET", "HEAD", "POST")
def add_rule(request: ConsoleRequest) -> HttpResponse:
    asked = {name: request.GET[name][:200] for name in ("server", "tool") if request.GET.get(name)}
    if len(asked) == 2:
        asked |= _suggested(".".join(asked.values()))
    return _form(request, Rule(position=services.last_position(), **asked))


def _suggested(name: str) -> dict[str, str]:
    """Initial values of a rule of one tool: its name too, where no rule has it."""
    taken = Rule.objects.filter(name=name).exists()
    return {"effect": Effect.ASK} | ({} if taken else {"name": name[:100]})


@page("policies.change_rule", "GET", "HEAD", "POST")
def rule(request: ConsoleRequest, pk: int) -> HttpResponse:
    return _form(request, get_object_or_404(Rule, pk=pk))


@page("policies.change_rule", "POST")
def move(request: ConsoleRequest, pk: int) -> HttpResponse:
    moved = get_object_or_404(Rule, pk=pk)
    place = request.POST.get("place", "")
    if place.isdecimal() and len(place) < 6:
        services.place_rule(moved, int(place), by=request.user.actor)
        return redirect("policies:rules")
    way = "later" if request.POST.get("way") == "later" else "earlier"
    services.move_rule(moved, earlier=way == "earlier", by=request.user.actor)
    # The button that was pressed has the focus again: to press it once more.
    there = redirect("policies:rules")
    there["Location"] += f"?moved={pk}&way={way}"
    return there


@page("policies.delete_rule", "GET", "HEAD", "POST")
def remove(request: ConsoleRequest, pk: int) -> HttpResponse:
    gone = get_object_or_404(Rule, pk=pk)
    if request.method == "POST":
        name = gone.name
        services.remove_rule(gone, by=request.user.actor)
        messages.success(request, _("“%s” is removed.") % name)
        return redirect("policies:rules")
    return render(request, "policies/rule_remove.html", {"section": "rules", "rule": gone})


def _form(request: ConsoleRequest, edited: Rule) -> HttpResponse:
    form = RuleForm(request.POST or None, instance=edited)
    if (
        request.method == "POST"
        and form.is_valid()
        and save_form(form, services.save_rule, by=request.user.actor)
    ):
        messages.success(request, _("“%s” is saved.") % edited.name)
        return redirect("policies:rules")
    given = {name: str(form[name].value() or "") for name in COVERING}
    context = {
        "section": "rules",
        "form": form,
        "rule": edited if edited.pk else None,
        "covers": _count(given),
    }
    return render(request, "policies/rule.html", context)


def _count(given: dict[str, Any]) -> int:
    if given["hint"] not in Rule.Hint.values:
        given["hint"] = ""
    (count,) = covered([Rule(**given)])
    return count
