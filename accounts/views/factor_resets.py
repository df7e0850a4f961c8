"""Help for somebody who lost their second factor: asked for by one administrator, confirmed by
another."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts import factor_resets, refusals, stepup
from accounts.actors import AccountRefused
from accounts.http import ConsoleRequest, reason_in
from accounts.models import FactorReset, User
from accounts.relying_party import expected_origins
from accounts.stepup import Ticket
from core.errors import CountersignError
from core.http import page
from core.messages.localizing import localized

MANAGE = "accounts.change_user"


@page(MANAGE, "GET", "HEAD", "POST")
def factor_reset(request: ConsoleRequest, pk: int) -> HttpResponse:
    person = get_object_or_404(User, pk=pk)
    if request.method != "POST":
        return _show(request, person)
    try:
        asked = factor_resets.pending_as_shown(person, request.POST.get("asked", ""))
        if asked and request.POST.get("act") == "deny":
            factor_resets.refuse(asked, by=request.user)
            messages.success(request, _("The second factors of “%s” stay.") % person.username)
            return redirect("accounts:person", pk)
        _act(request, person, asked)
    except CountersignError as error:
        return _show(request, person, error=str(error))
    return redirect("accounts:person", pk)


@page(MANAGE, "POST")
def factor_reset_options(request: ConsoleRequest, pk: int) -> JsonResponse:
    """For the browser's passkey script."""
    person, ticket = get_object_or_404(User, pk=pk), Ticket.new()
    try:
        asked = factor_resets.pending_as_shown(person, request.POST.get("asked", ""))
    except AccountRefused as error:
        return JsonResponse({"error": localized(str(error))}, status=403)
    said = factor_resets.statement(person, request.user, ticket, asked)
    return JsonResponse(stepup.offer(request.user, ticket, said))


def _act(request: ConsoleRequest, person: User, asked: FactorReset | None) -> None:
    """Asks, or confirms what another one asked for."""
    by = request.user
    why = factor_resets.why_not_confirm(asked, by) if asked else factor_resets.why_not(person, by)
    if why:
        error = AccountRefused(why)
        if asked:
            refusals.confirmation(request, asked, error)
        raise error
    proof = factor_resets.prove(person, by, request.POST, asked)
    if asked is None:
        factor_resets.request(person, by=by, reason=reason_in(request), proof=proof)
        said = _("Another administrator has to confirm it. Until then nothing is removed.")
        messages.warning(request, said)
        return
    factor_resets.confirm(asked, by=by, proof=proof)
    said = _("The second factors of “%s” are removed, and their sessions have ended.")
    messages.success(request, said % person.username)


def _show(request: ConsoleRequest, person: User, *, error: str = "") -> HttpResponse:
    asked, by = factor_resets.pending(person), request.user
    why = factor_resets.why_not_confirm(asked, by) if asked else factor_resets.why_not(person, by)
    has_passkey, has_codes = by.proof_means
    context = {
        "section": "people",
        "person": person,
        "asked": asked,
        "obstacle": why,
        "error": error,
        "reason": reason_in(request),
        "has_passkey": has_passkey,
        "has_codes": has_codes,
        "origin": expected_origins()[0],
    }
    status = 403 if error else 200
    return render(request, "accounts/factor_reset.html", context, status=status)
