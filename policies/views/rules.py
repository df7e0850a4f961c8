"""Rules as a list that people read from top to bottom, and as forms."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core.http import page
from policies import drafts, services
from policies.coverage import covered, covered_tools, nevers, shadows, unmet
from policies.drafts import TEMPLATES, RuleDraft
from policies.feasibility import why_unmeetable
from policies.forms.rules import RuleForm
from policies.models import Rule
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
    return rule_form(request, _draft(request))


def _draft(request: ConsoleRequest) -> RuleDraft:
    """What a new rule begins with, by the address."""
    given = {name: request.GET.get(name, "")[:200] for name in ("copy", "template", *COVERING)}
    if given["copy"]:
        return drafts.copy_of(get_object_or_404(Rule, pk=_number(given["copy"])))
    if given["template"]:
        zone = request.user.time_zone or "UTC"
        return drafts.read_template(given["template"], given["server"], zone)
    return drafts.of_patterns(given["server"], given["tool"])


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


@page("policies.change_rule", "GET", "HEAD", "POST")
def rule(request: ConsoleRequest, pk: int) -> HttpResponse:
    return _form(request, get_object_or_404(Rule, pk=pk), RuleDraft())


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


def rule_form(request: ConsoleRequest, draft: RuleDraft) -> HttpResponse:
    """The page of a new rule that begins with this; saves it where it is posted."""
    return _form(request, draft.rule(), draft)


def _form(request: ConsoleRequest, edited: Rule, draft: RuleDraft) -> HttpResponse:
    given_data = request.POST or None
    form = RuleForm(given_data, instance=edited, initial=draft.initial(), offers=draft.offers)
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
        "note": draft.note,
        "templates": TEMPLATES,
        "covers": _count(given),
    }
    return render(request, "policies/rule.html", context)


def _count(given: dict[str, Any]) -> int:
    if given["hint"] not in Rule.Hint.values:
        given["hint"] = ""
    (count,) = covered([Rule(**given)])
    return count
