"""Retention periods, as a page of the settings."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from approvals.retention.changing import MOST_COUNTED, count_due, remove_period, set_period
from approvals.retention.form import RetentionForm
from calls.content.retention import RetentionRules
from calls.models import PostponedErasure, RetainedContent, RetentionPeriod, RetentionScope
from core.http import page
from registry.labels import Label
from registry.models import Server, Tag, Tool

PERMISSION = "calls.erase_payload"
# Of what the form offers while a name is typed.
OFFERED = 200


@page(PERMISSION, "GET", "HEAD", "POST")
def periods(request: ConsoleRequest) -> HttpResponse:
    form = RetentionForm(request.POST or None, initial=_initial(request))
    if request.method != "POST" or not form.is_valid():
        return _show(request, form)
    content, days = RetainedContent(form.cleaned_data["content"]), form.cleaned_data["days"]
    now = RetentionRules.load(content)
    due = count_due(now, now.changed(form.key, days))
    proposal = json.dumps([content, *form.key, days])
    # Whoever changes the form after the question is asked again.
    if due and request.POST.get("sure") != proposal:
        return _show(request, form, due=due, proposal=proposal)
    set_period(content, form.key, days, by=request.user)
    messages.success(request, _("The retention period is saved."))
    return redirect("approvals:retention")


@page(PERMISSION, "GET", "HEAD", "POST")
def remove(request: ConsoleRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(RetentionPeriod, pk=pk)
    if request.method == "POST" and request.POST.get("sure"):
        remove_period(row, by=request.user)
        messages.success(request, _("The retention period is removed."))
        return redirect("approvals:retention")
    now = RetentionRules.load(RetainedContent(row.content))
    then = now.changed((RetentionScope(row.scope), row.target), None, removed=True)
    context = {
        "section": "retention",
        "period": row,
        "error": _("Confirm that the period is removed.") if request.method == "POST" else "",
        **_due(count_due(now, then)),
    }
    return render(request, "approvals/retention_remove.html", context)


def _initial(request: ConsoleRequest) -> dict[str, Any]:
    """Values of the form for a period that is to be changed."""
    asked = request.GET.get("period", "")[:9]
    row = RetentionPeriod.objects.filter(pk=int(asked)).first() if asked.isdecimal() else None
    known = ("content", "scope", "target", "days")
    return {name: getattr(row, name) for name in known} if row else {"scope": RetentionScope.ALL}


def _due(count: int) -> dict[str, Any]:
    return {"due": count, "is_more": count >= MOST_COUNTED}


def _show(
    request: ConsoleRequest, form: RetentionForm, *, due: int = 0, proposal: str = ""
) -> HttpResponse:
    order = {scope: number for number, scope in enumerate(reversed(RetentionScope.values))}
    rows = sorted(
        RetentionPeriod.objects.all(), key=lambda r: (r.content, order[r.scope], r.target)
    )
    context = {
        "section": "retention",
        "form": form,
        "periods": rows,
        "postponed": PostponedErasure.objects.count(),
        "proposal": proposal,
        "targets": _targets(),
        **_due(due),
    }
    return render(request, "approvals/retention.html", context)


def _targets() -> list[str]:
    return [
        *Label.values,
        *Tag.objects.values_list("name", flat=True)[:OFFERED],
        *Server.objects.kept().order_by("slug").values_list("slug", flat=True)[:OFFERED],
        *Tool.objects.values_list("exposed_name", flat=True)[:OFFERED],
    ]
