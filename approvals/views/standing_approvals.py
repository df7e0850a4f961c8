"""Standing grants: making one from an approved call, seeing them all, taking them back."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.utils.translation import ngettext

from accounts.http import ConsoleRequest
from approvals import bounds, forms, standing_approvals
from approvals.bounds import BadBound
from approvals.forms import TermsForm
from approvals.models import MOST_DAYS, Approval, Grant, GrantQuerySet
from approvals.proposed_terms import proposed
from approvals.standing_approvals import GrantRefused, Proposal
from calls.models import Call
from core.http import page
from core.paging import paged

GRANTS = 50
# Icon and colour, and the word beside it.
STATES = {
    "in_force": ("ok", _lazy("In force")),
    "suspended": ("held", _lazy("Suspended: the definition changed")),
    "used_up": ("retired", _lazy("Used up")),
    "expired": ("expired", _lazy("Expired")),
    "revoked": ("withdrawn", _lazy("Revoked")),
}
LISTS = ("in_force", "suspended")


@page("approvals.decide_approval", "GET", "HEAD", "POST")
def new_grant(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    call = get_object_or_404(Approval.objects.for_queue(), pk=call_id).call
    if request.method != "POST":
        is_proposed = request.GET.get("bounds") == "past"
        form = proposed(call, request.user) if is_proposed else forms.first(call)
        return _form(request, call, form)
    form = forms.filled(call, request.POST, request.POST.getlist("weekday"))
    if request.POST.get("do") != "make" or request.POST.get("looked") != form.digest:
        # What one has not seen the meaning of, one does not grant.
        return _form(request, call, form)
    try:
        made = standing_approvals.make(call, form.terms(), by=request.user)
    except (BadBound, GrantRefused) as refused:
        return _form(request, call, form, str(refused))
    messages.success(request, _("Standing approval %(id)d is active.") % {"id": made.pk})
    return redirect("approvals:grants")


def _form(request: ConsoleRequest, call: Call, form: TermsForm, error: str = "") -> HttpResponse:
    obstacle = standing_approvals.why_not(call, request.user)
    proposal: Proposal | None = None
    if not obstacle and not error:
        try:
            proposal = standing_approvals.considered(call, form.terms(), by=request.user)
        except (BadBound, GrantRefused) as refused:
            error = str(refused)
    context = {
        "section": "grants",
        "call": call,
        "form": form,
        "obstacle": obstacle,
        "error": error,
        "proposal": proposal,
        "weekdays": weekdays(),
        "most": {"uses": standing_approvals.MOST_USES, "days": MOST_DAYS},
    }
    return render(request, "approvals/grant_new.html", context, status=422 if error else 200)


def weekdays() -> list[tuple[int, str]]:
    monday = date(2026, 1, 5)
    return [(n, date_format(monday + timedelta(days=n), "D")) for n in range(7)]


@page("approvals.view_grant")
def grants(request: ConsoleRequest) -> HttpResponse:
    ended = "ended" in request.GET
    found = paged(_grants(ended), "-id", request.GET, size=GRANTS)
    standing = Grant.objects.not_ended()
    context = {
        "section": "grants",
        "page": found,
        "grants": [_described(grant, request) for grant in found.rows],
        "ended": ended,
        "mine": standing.filter(owner=request.user).count(),
        "all": standing.count(),
    }
    return render(request, "approvals/grants.html", context)


@page("approvals.view_grant", "POST")
def revoke(request: ConsoleRequest, pk: int) -> HttpResponse:
    grant = get_object_or_404(Grant.objects.for_page(), pk=pk)
    if not standing_approvals.may_revoke(grant, request.user):
        raise PermissionDenied
    if standing_approvals.revoke(grant, by=request.user):
        messages.success(request, _("Standing approval %(id)d is revoked.") % {"id": pk})
    else:
        messages.warning(request, _("Standing approval %(id)d was revoked before.") % {"id": pk})
    return redirect("approvals:grants")


@page("approvals.view_grant", "POST")
def revoke_all(request: ConsoleRequest) -> HttpResponse:
    """One's own; everybody's with the permission and if that is what was pressed."""
    chosen = Grant.objects.for_page().not_ended()
    if request.POST.get("whose") != "all":
        chosen = chosen.filter(owner=request.user)
    elif not request.user.has_perm("approvals.revoke_grant"):
        raise PermissionDenied
    n = standing_approvals.revoke_all(list(chosen), by=request.user)
    said = ngettext(
        "%(n)d standing approval is revoked.", "%(n)d standing approvals are revoked.", n
    )
    messages.success(request, said % {"n": n})
    return redirect("approvals:grants")


def _grants(ended: bool) -> GrantQuerySet:
    found = Grant.objects.for_page()
    return found.ended() if ended else found.not_ended()


def _described(grant: Grant, request: ConsoleRequest) -> dict[str, Any]:
    return {
        "row": grant,
        "state": STATES[grant.state],
        "bounds": [str(bound) for bound in bounds.parse(grant.bounds)],
        "window": _window(grant),
        "may_revoke": grant.state in LISTS and standing_approvals.may_revoke(grant, request.user),
    }


def _window(grant: Grant) -> str:
    """When it holds; empty if always."""
    names = dict(weekdays())
    days = ", ".join(names[day] for day in grant.days)
    hours = ""
    if (grant.start_minute, grant.end_minute) != (0, forms.DAY):
        hours = f"{_clock(grant.start_minute)}–{_clock(grant.end_minute)} {grant.time_zone}"
    return " ".join(part for part in (days, hours) if part)


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
