"""Rules tried on the calls of the last week: from the form, and those that only monitor."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from accounts.http import ConsoleRequest
from approvals import rule_trials
from approvals.policy_plans.planning import PlanningBusy
from approvals.rule_trials import DAYS, RuleTrial
from core.http import is_htmx, page
from policies import services
from policies.forms.rules import RuleForm
from policies.models import Effect, Rule


@page("policies.change_rule", "POST")
def try_new(request: ConsoleRequest) -> HttpResponse:
    return _try(request, Rule(position=services.last_position()))


@page("policies.change_rule", "POST")
def try_changed(request: ConsoleRequest, pk: int) -> HttpResponse:
    return _try(request, get_object_or_404(Rule, pk=pk))


@page("policies.view_rule")
def show(request: ConsoleRequest, pk: int) -> HttpResponse:
    """The report of a rule that only monitors."""
    _check_calls(request)
    try:
        trial = rule_trials.try_rule(get_object_or_404(Rule, pk=pk))
    except PlanningBusy as error:
        return _show(request, None, [str(error)], status=503)
    return _show(request, trial, [])


def _try(request: ConsoleRequest, rule: Rule) -> HttpResponse:
    _check_calls(request)
    form = RuleForm(
        request.POST, instance=rule, may_read=request.user.has_perm("calls.view_payload")
    )
    if not form.is_valid():
        return _show(request, None, _mistakes(form))
    try:
        return _show(request, rule_trials.try_form(form), [])
    except ValidationError as error:
        return _show(request, None, error.messages)
    except PlanningBusy as error:
        return _show(request, None, [str(error)])


def _check_calls(request: ConsoleRequest) -> None:
    # Calls are named.
    if not request.user.has_perm("calls.view_call"):
        raise PermissionDenied


def _mistakes(form: RuleForm) -> list[str]:
    """Each behind the label of its field: the form is not drawn again."""
    return [
        f"{form.fields[name].label}: {one}" if name in form.fields else str(one)
        for name, mistakes in form.errors.items()
        for one in mistakes
    ]


def _show(
    request: ConsoleRequest, trial: RuleTrial | None, mistakes: list[str], status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "section": "rules",
        "trial": trial,
        "mistakes": mistakes,
        "days": DAYS,
        "result": trial.result if trial else None,
        "effects": dict(Effect.choices),
    }
    part = "#trial" if is_htmx(request) else ""
    return render(request, f"approvals/rule_trial.html{part}", context, status=status)
