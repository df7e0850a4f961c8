"""The second step of a sign-in."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import attempts, password_reset, recovery_codes, second_factor
from accounts.models import User
from accounts.relying_party import expected_origins
from accounts.second_factor import PendingSignIn
from accounts.stepup import NotProven
from accounts.views.signed_in import signed_in
from audit.services import record

TEMPLATE = "accounts/second_factor.html"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def second_step(request: HttpRequest) -> HttpResponse:
    found = second_factor.pending(request)
    if found is None:
        second_factor.end(request)
        return redirect("accounts:sign_in")
    waiting, person = found
    if request.method != "POST":
        return _show(request, person)
    try:
        method = second_factor.prove(request, waiting, person)
    except attempts.TooManyAttempts as error:
        return _show(request, person, error=str(error), status=429)
    except NotProven as error:
        return _show(request, person, error=str(error), status=403)
    try:
        return _signed_in(request, waiting, person, method)
    except password_reset.ResetRefused:
        messages.error(request, _("The password was not set. Ask for another link."))
        return redirect("accounts:sign_in")


@never_cache
@require_POST
def passkey_options(request: HttpRequest) -> HttpResponse:
    found = second_factor.pending(request)
    if found is None:
        said = _("This sign-in expired. Begin again.")
        return JsonResponse({"error": said}, status=403)
    return JsonResponse(second_factor.offer(*found))


def _signed_in(
    request: HttpRequest, waiting: PendingSignIn, person: User, method: str
) -> HttpResponse:
    second_factor.end(request)
    if waiting.new_password:
        password_reset.finish(person, waiting.new_password)
    record("person.signed_in", actor=person.actor, reason=waiting.first_step, second_factor=method)
    response = signed_in(request, person, waiting.next_page, provider_session=waiting.at_provider)
    if waiting.new_password:
        messages.success(request, _("Your password is set, and all other sessions have ended."))
    if method == recovery_codes.METHOD:
        messages.warning(request, _codes_left(recovery_codes.count_left(person)))
    return response


def _codes_left(count: int) -> str:
    said = ngettext(
        "You used a recovery code: %d is left. Create new ones on your profile.",
        "You used a recovery code: %d are left. Create new ones on your profile.",
        count,
    )
    return said % count


def _show(
    request: HttpRequest, person: User, *, error: str = "", status: int = 200
) -> HttpResponse:
    has_passkey, has_codes = person.proof_means
    context = {
        "name": person.username,
        "has_passkey": has_passkey,
        "has_codes": has_codes,
        "has_recovery_codes": recovery_codes.count_left(person) > 0,
        "tried_recovery_code": "recovery_code" in request.POST,
        "error": error,
        "origin": expected_origins()[0],
    }
    return render(request, TEMPLATE, context, status=status)
