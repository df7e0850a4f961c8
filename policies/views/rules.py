"""Rules as a list that people read from top to bottom, and as forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core.http import page
from policies import drafts, picks, services
from policies.coverage import (
    MOST_TOOLS,
    covered,
    covered_tools,
    nevers,
    published_methods,
    shadows,
    unmet,
)
from policies.drafts import TEMPLATES, RuleDraft, RuleTemplate
from policies.feasibility import why_unmeetable
from policies.forms.rules import RuleForm
from policies.models import Effect, Rule
from policies.scope import CountCalls, agents_of
from policies.thresholds import DEFAULT, deciders
from policies.views.saving import save_form
from registry import managed

COVERING = ("server", "tool", "hint")
BEGINNINGS = ("copy", "relax", "template", "of", *COVERING)
CALLING = ("agents", "owner_groups")
# An address has no room for more.
CHOSEN_MAX = 1_000


@page("policies.view_rule")
def rules(request: HttpRequest) -> HttpResponse:
    shown = list(Rule.objects.in_order().prefetch_related("agents", "owner_groups"))
    never, able, tools = nevers(shown), deciders(), covered_tools(shown)
    unmeetable = unmet(shown, able, tools)
    overlaps = shadows(shown, tools, published_methods())
    context = {
        "section": "rules",
        "managed_by": managed.source_of(managed.RULES),
        "rules": [
            (rule, overlap, never.get(rule.pk, ""), unmeetable.get(rule.pk, ""))
            for rule, overlap in zip(shown, overlaps, strict=True)
        ],
        "strictness": dict(Effect.choices),
        "nobody": why_unmeetable(DEFAULT, able),
        "moved": request.GET.get("moved", ""),
        "way": request.GET.get("way", ""),
    }
    return render(request, "policies/rules.html", context)


@page("policies.view_rule")
def covers(request: ConsoleRequest, count_calls: CountCalls) -> HttpResponse:
    """The published tools that the patterns in the form cover, and their calls, while typed."""
    given = {name: request.GET.get(name, "")[:200] for name in COVERING}
    chosen = {name: request.GET.getlist(name)[:CHOSEN_MAX] for name in CALLING}
    return render(request, "policies/covers.html", _coverage(request, given, chosen, count_calls))


@page("policies.add_rule", "GET", "HEAD", "POST")
def add_rule(request: ConsoleRequest, count_calls: CountCalls) -> HttpResponse:
    return rule_form(request, _draft(request), count_calls, templates=TEMPLATES)


def _draft(request: ConsoleRequest) -> RuleDraft:
    """The values that a new rule begins with, by the address."""
    given = {name: request.GET.get(name, "")[:200] for name in BEGINNINGS}
    if given["relax"]:
        asking = get_object_or_404(Rule, pk=_number(given["relax"]))
        agents = [_number(one) for one in request.GET.getlist("agent")[:CHOSEN_MAX]]
        return drafts.relaxed(asking, given["server"], given["tool"], agents)
    if given["copy"]:
        return drafts.copy_of(get_object_or_404(Rule, pk=_number(given["copy"])))
    if given["template"]:
        zone = request.user.time_zone or "UTC"
        return drafts.read_template(given["template"], given["of"], zone)
    return drafts.of_patterns(given["server"], given["tool"])


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


@page("policies.change_rule", "GET", "HEAD", "POST")
def rule(request: ConsoleRequest, pk: int, count_calls: CountCalls) -> HttpResponse:
    return _form(request, get_object_or_404(Rule, pk=pk), RuleDraft(), count_calls)


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


def rule_form(
    request: ConsoleRequest,
    draft: RuleDraft,
    count_calls: CountCalls,
    templates: Sequence[RuleTemplate] = (),
) -> HttpResponse:
    """The page of a new rule that begins with this; saves it where it is posted."""
    return _form(request, draft.rule(), draft, count_calls, templates=templates)


def _form(
    request: ConsoleRequest,
    edited: Rule,
    draft: RuleDraft,
    count_calls: CountCalls,
    **shown: Any,
) -> HttpResponse:
    given = request.POST or None
    form = RuleForm(
        given,
        instance=edited,
        initial=draft.initial(),
        offers=draft.offers,
        may_read=request.user.has_perm("calls.view_payload"),
    )
    if (
        request.method == "POST"
        # Without a script, a button counts what is covered.
        and "count" not in request.POST
        and form.is_valid()
        and save_form(form, services.save_rule, by=request.user.actor)
    ):
        messages.success(request, _("“%s” is saved.") % edited.name)
        return redirect("policies:rules")
    patterns = {name: str(form[name].value() or "") for name in COVERING}
    chosen = {name: list(form[name].value() or []) for name in CALLING}
    context = {
        "section": "rules",
        "managed_by": managed.source_of(managed.RULES),
        "form": form,
        "rule": edited if edited.pk else None,
        "note": draft.note,
        "server_picks": picks.servers(""),
    }
    context |= shown | _coverage(request, patterns, chosen, count_calls)
    return render(request, "policies/rule.html", context)


def _coverage(
    request: ConsoleRequest,
    patterns: dict[str, str],
    chosen: dict[str, list[str]],
    count_calls: CountCalls,
) -> dict[str, Any]:
    if patterns["hint"] not in Rule.Hint.values:
        patterns["hint"] = ""
    (tools,) = covered_tools([Rule(**patterns)]).values()
    number = covered(tools, published_methods())
    found: dict[str, Any] = {"covers": number, "is_cut": sum(number) == MOST_TOOLS}
    if tools and request.user.has_perm("calls.view_call"):
        found["calls"] = count_calls(tools, agents_of(chosen["agents"], chosen["owner_groups"]))
    return found
