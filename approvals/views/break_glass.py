"""Uses of break-glass, and their review by somebody else."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from approvals import break_glass as services
from approvals.break_glass import ReviewRefused
from approvals.models import BreakGlass
from core.http import page
from policies.thresholds import DECIDE

SHOWN = 50


@page("approvals.view_approval")
def uses(request: ConsoleRequest) -> HttpResponse:
    every = BreakGlass.objects.for_page()
    unreviewed = [
        (one, services.why_not_reviewed(one, request.user)) for one in every.unreviewed()[:SHOWN]
    ]
    context = {
        "section": "queue",
        "unreviewed": unreviewed,
        "reviewed": every.exclude(reviewed_at=None)[:SHOWN],
        "count": services.count_lately(),
        "judgements": BreakGlass.Judgement.choices,
    }
    return render(request, "approvals/break_glass.html", context)


@page(DECIDE, "POST")
def review(request: ConsoleRequest, pk: int) -> HttpResponse:
    used = get_object_or_404(BreakGlass.objects.for_page(), pk=pk)
    given = request.POST
    try:
        services.review(
            used,
            by=request.user,
            judgement=given.get("judgement", ""),
            note=given.get("note", ""),
        )
    except ReviewRefused as error:
        messages.warning(request, str(error))
    else:
        messages.success(request, _("It is reviewed."))
    return redirect("approvals:break_glass")
