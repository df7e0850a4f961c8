"""Charts of one person's decisions: approved, denied, and the time to decide."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from accounts.http import ConsoleRequest
from accounts.models import User
from approvals.decision_figures import DECISIONS, read_decisions
from calls.views.range_charts import draw_range
from core.http import page


@page("")
def decisions(request: ConsoleRequest, pk: int) -> HttpResponse:
    """One's own, and everybody's for those who may see users."""
    if pk != request.user.pk and not request.user.has_perm("accounts.view_user"):
        raise PermissionDenied
    person = get_object_or_404(User, pk=pk)
    drawn = draw_range(
        request.GET.get("range", ""),
        request.user,
        lambda edges, now: read_decisions(pk, edges, now),
        None,
        DECISIONS,
    )
    return render(
        request, "approvals/decisions.html", {"section": "people", "person": person} | drawn
    )
