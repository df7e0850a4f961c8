"""Signing in with a passkey alone."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts import attempts, passkey_sign_in
from accounts.attempts import TooManyAttempts
from accounts.stepup import NotProven
from accounts.views.sign_in import NOT_LOCALLY, SignIn
from accounts.views.signed_in import signed_in
from audit.services import record


@never_cache
@require_POST
def options(request: HttpRequest) -> HttpResponse:
    return JsonResponse(passkey_sign_in.offer(request))


@never_cache
@require_POST
def sign_in(request: HttpRequest) -> HttpResponse:
    page = SignIn()
    page.setup(request)
    try:
        if not settings.LOCAL_SIGN_IN:
            attempts.wrong(attempts.begin_passkey(request), "", NOT_LOCALLY)
            return page.refused(NOT_LOCALLY, status=403)
        person = passkey_sign_in.prove(request, request.POST.get("answer", ""))
    except TooManyAttempts as error:
        return page.refused(str(error), status=429)
    except NotProven as error:
        return page.refused(str(error), status=403)
    record(
        "person.signed_in",
        actor=person.actor,
        reason=passkey_sign_in.BY_PASSKEY,
        second_factor="passkey",
    )
    return signed_in(request, person, page.get_success_url())
