"""Break-glass of one pending call. It is here since whoever is named has to be reachable."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.relying_party import expected_origins
from approvals import break_glass as services
from approvals import step_up_proofs
from approvals.break_glass import BREAK_GLASS
from approvals.cards import card
from approvals.models import Approval
from approvals.services import DecisionRefused
from approvals.step_up_proofs import ShownCall
from core.http import page
from core.outage import recording
from notifications.break_glass_forms import BreakGlassForm


@page(BREAK_GLASS, "GET", "HEAD", "POST")
def break_glass(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    form = BreakGlassForm(approval, request.user, request.POST or None)
    error = ""
    if request.method == "POST" and form.is_valid():
        with recording(request):
            error = _use(request, approval, form)
        if not error:
            messages.success(request, _("The call is sent. Another approver reviews this."))
            return redirect("approvals:detail", call_id)
        approval = Approval.objects.for_queue().get(pk=call_id)
    return _show(request, approval, form, error)


@page(BREAK_GLASS, "POST")
def sign(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """Returns the passkey options for the script: the statement names the second and the reason."""
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    form = BreakGlassForm(approval, request.user, request.POST)
    error = services.why_not(approval, request.user)
    if not error and request.POST.get("seen", "") != approval.call.call_digest:
        error = _("What you were shown is not what would be sent. Look again.")
    if not error and not form.is_valid():
        error = _("Choose who is notified, and give a reason.")
    if error:
        return JsonResponse({"error": error}, status=403)
    return JsonResponse(step_up_proofs.offer([ShownCall.of(approval)], request.user, _lines(form)))


def _lines(form: BreakGlassForm) -> str:
    given = form.cleaned_data
    return services.statement_line(given["second"], given["reason"])


def _use(request: ConsoleRequest, approval: Approval, form: BreakGlassForm) -> str:
    """The reason why it was not done; "" if it was."""
    given = form.cleaned_data
    try:
        proof = step_up_proofs.prove_break_glass(approval, request.user, _lines(form), request.POST)
        services.use(
            approval,
            by=request.user,
            second=given["second"],
            reason=given["reason"],
            seen_digest=request.POST.get("seen", ""),
            proof=proof,
        )
    except DecisionRefused as error:
        return str(error)
    return ""


def _show(
    request: ConsoleRequest, approval: Approval, form: BreakGlassForm, error: str
) -> HttpResponse:
    context = {
        "section": "queue",
        "approval": approval,
        "call": approval.call,
        "card": card(approval, request.user),
        "form": form,
        "error": error,
        "obstacle": services.why_not(approval, request.user),
        "has_passkey": request.user.proof_means[0],
        "origin": expected_origins()[0],
    }
    return render(request, "notifications/break_glass.html", context)
