"""Rules as a list that people read from top to bottom, and as forms."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.http import ConsoleRequest
from core.http import page
from policies import services
from policies.coverage import covered, nevers, shadows, unmet
from policies.feasibility import why_unmeetable
from policies.models import Effect, Rule
from policies.thresholds import DEFAULT, deciders
from policies.thresholds_form import (
    HELP,
    LABEL,
    ThresholdRow,
    ThresholdRowsWidget,
    ThresholdsField,
    rows,
)

COVERING = ("server", "tool", "hint")


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]
    """Every field that a rule has but its place, so that a new field is here with its model."""

    # Django would offer a row of dashes.
    effect = forms.ChoiceField(
        label=gettext_lazy("Effect"), choices=[("", gettext_lazy("Choose …")), *Effect.choices]
    )
    thresholds = ThresholdsField(required=False, label=LABEL, help_text=HELP)

    class Meta:
        model = Rule
        exclude = ["position"]  # noqa: DJ006 as the class says
        widgets = {
            "agents": forms.CheckboxSelectMultiple,
            "owner_groups": forms.CheckboxSelectMultiple,
            "when": forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
        }
        labels = {
            "agents": gettext_lazy("Agents"),
            "owner_groups": gettext_lazy("Groups of their owners"),
        }
        help_texts = {
            "server": gettext_lazy("A name or a pattern: * stands for anything, ? for one letter."),
            "tool": gettext_lazy("As its server calls it; patterns as above."),
            "hint": gettext_lazy("What the server claims can make a rule stricter, never looser."),
            "agents": gettext_lazy("None chosen means every agent."),
            "owner_groups": gettext_lazy("None chosen means every owner."),
            "when": gettext_lazy("In CEL, for example: args.amount > 1000. Empty means always."),
            "reason": gettext_lazy("Agents and approvers read it."),
            "instead": gettext_lazy("Agents read it with a refusal, and need not guess."),
            "decide_within": gettext_lazy("Seconds. Empty: as the installation is set."),
            "start_within": gettext_lazy("Seconds from the approval to the start. Empty as above."),
        }

    field_order = ["name", "effect", "server", "tool", "hint", "when", "agents", "owner_groups"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        groups = self.fields["owner_groups"]
        assert isinstance(groups, forms.ModelMultipleChoiceField)
        groups.queryset = Group.objects.order_by("name")

    def kind(self, name: str) -> str:
        widget = self.fields[name].widget
        if isinstance(widget, ThresholdRowsWidget):
            return "thresholds"
        if isinstance(widget, forms.CheckboxSelectMultiple):
            return "choices"
        return "check" if isinstance(widget, forms.CheckboxInput) else "field"

    def threshold_rows(self) -> list[ThresholdRow]:
        return rows(self["thresholds"].value())

    def pieces(self) -> list[tuple[str, forms.BoundField]]:
        return [(self.kind(bound.name), bound) for bound in self]


@page("policies.view_rule")
def rules(request: HttpRequest) -> HttpResponse:
    shown = list(Rule.objects.in_order().prefetch_related("agents", "owner_groups"))
    never, able = nevers(shown), deciders()
    unmeetable = unmet(shown, able)
    context = {
        "section": "rules",
        "rules": [
            (rule, overlap, never.get(rule.pk, ""), unmeetable.get(rule.pk, ""))
            for rule, overlap in zip(shown, shadows(shown), strict=True)
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
    return _form(request, Rule(position=services.last_position()))


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
    if request.method == "POST" and form.is_valid() and _saved(request, form):
        messages.success(request, _("“%s” is saved and holds from now on.") % edited.name)
        return redirect("policies:rules")
    given = {name: str(form[name].value() or "") for name in COVERING}
    context = {
        "section": "rules",
        "form": form,
        "rule": edited if edited.pk else None,
        "covers": _count(given),
    }
    return render(request, "policies/rule.html", context)


def _saved(request: ConsoleRequest, form: RuleForm) -> bool:
    given = form.cleaned_data
    try:
        services.save_rule(
            form.save(commit=False),
            by=request.user.actor,
            agents=list(given["agents"]),
            owner_groups=list(given["owner_groups"]),
        )
    except ValidationError as error:
        form.add_error(None, error)
        return False
    return True


def _count(given: dict[str, Any]) -> int:
    if given["hint"] not in Rule.Hint.values:
        given["hint"] = ""
    (count,) = covered([Rule(**given)])
    return count
