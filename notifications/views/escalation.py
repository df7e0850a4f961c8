"""Escalation policies: made, changed and removed by administrators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import IntegrityError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import User
from core.http import page
from notifications import escalation_policies
from notifications.escalation_forms import KNOWN_ALREADY, EscalationPolicyForm, Steps, value_of
from notifications.models import EscalationPolicy
from policies.models import Rule


@page("notifications.change_escalationpolicy", "GET", "HEAD", "POST")
def add(request: ConsoleRequest) -> HttpResponse:
    """`rule` of the address, an id: the rule that is chosen already."""
    given = request.GET.get("rule", "")
    pk = int(given) if given.isdecimal() and len(given) < 18 else 0
    rule = Rule.objects.filter(pk=pk).first()
    known = EscalationPolicy.objects.filter(rule=rule).first() if rule else None
    if known and request.method != "POST":
        return redirect("notifications:edit_escalation", known.pk)
    return _form(request, EscalationPolicy(rule=rule), [])


@page("notifications.change_escalationpolicy", "GET", "HEAD", "POST")
def edit(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    edited = get_object_or_404(EscalationPolicy, pk=pk)
    steps = [{"after": one.after_min, "who": value_of(one)} for one in edited.steps.all()]
    return _form(request, edited, steps)


@page("notifications.change_escalationpolicy", "GET", "HEAD", "POST")
def remove(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    gone = get_object_or_404(EscalationPolicy, pk=pk)
    if request.method != "POST":
        context = {"section": "notifications", "policy": gone}
        return render(request, "notifications/escalation_remove.html", context)
    escalation_policies.remove(gone, by=request.user)
    messages.success(request, _("The escalation policy is removed: everybody is notified at once."))
    return redirect("notifications:webhooks")


def _form(
    request: ConsoleRequest, edited: EscalationPolicy, initial: list[dict[str, object]]
) -> HttpResponse:
    form = EscalationPolicyForm(request.POST or None, instance=edited)
    steps: Any = Steps(request.POST or None, initial=initial, prefix="steps")
    if (
        request.method == "POST"
        and form.is_valid()
        and steps.is_valid()
        and _save(form, steps, request.user)
    ):
        messages.success(request, _("The escalation policy is saved."))
        return redirect("notifications:webhooks")
    context = {
        "section": "notifications",
        "form": form,
        "steps": steps,
        "policy": None if edited._state.adding else edited,
    }
    return render(request, "notifications/escalation_form.html", context)


def _save(form: EscalationPolicyForm, steps: Any, by: User) -> bool:
    """False where another one was made since the form was checked."""
    try:
        escalation_policies.save(form.save(commit=False), steps.steps(), by=by)
    except IntegrityError:
        form.add_error(None, KNOWN_ALREADY)
        return False
    return True
