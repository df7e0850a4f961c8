"""A person's own delegations: whom they vote for, and who votes for them."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from approvals import delegations
from approvals.delegation_form import DelegationForm
from approvals.delegations import DelegationRefused
from approvals.models import Delegation
from core.http import page
from policies.thresholds import DECIDE


@page(DECIDE, "GET", "HEAD", "POST")
def mine(request: ConsoleRequest) -> HttpResponse:
    with timezone.override(request.user.time_zone or "UTC"):
        form = DelegationForm(request.user, request.POST or None)
        if request.method == "POST" and form.is_valid() and _make(form):
            messages.success(request, _("Delegation created."))
            return redirect("approvals:delegations")
        return _show(request, form)


@page(DECIDE, "POST")
def end(request: ConsoleRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(Delegation.objects.for_page(), _concerns(request), pk=pk)
    delegations.end(found, by=request.user)
    messages.success(request, _("The delegation is ended."))
    return redirect("approvals:delegations")


def _concerns(request: ConsoleRequest) -> Q:
    return Q(delegator=request.user) | Q(delegate=request.user)


def _make(form: DelegationForm) -> bool:
    try:
        delegations.make(form.save(commit=False))
    except DelegationRefused as error:
        form.add_error(None, str(error))
        return False
    return True


def _show(request: ConsoleRequest, form: DelegationForm) -> HttpResponse:
    current = Delegation.objects.current().filter(_concerns(request)).for_page()
    context = {"section": "profile", "form": form, "delegations": current}
    return render(request, "approvals/delegations.html", context)
