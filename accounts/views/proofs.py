"""A person's passkeys, code app and recovery codes, on their profile. Whatever outlives the
session asks for the password again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import one_time_codes, passkeys, recovery_codes, services
from accounts.http import ConsoleRequest
from accounts.models import CodeApp, Passkey, User
from accounts.relying_party import expected_origins
from core.errors import CountersignError
from core.http import page
from core.messages.localizing import localized

CHALLENGE = "passkey_challenge"
# The page that was asked for before a second factor had to be set up.
AFTER = "after_set_up"
VALID_S = 300


def proving(person: User) -> dict[str, Any]:
    """The profile's part on passkeys and codes."""
    app = CodeApp.objects.filter(person=person).first()
    return {
        "passkeys": person.passkeys.usable(),
        "code_app": app,
        "code_secret": one_time_codes.secret(app) if app and not app.confirmed_at else "",
        "recovery_codes_left": recovery_codes.count_left(person),
        "recovery_codes_made": recovery_codes.COUNT,
        "origin": expected_origins()[0],
    }


@page("", "POST", before_factor=True)
def begin_passkey(request: ConsoleRequest) -> HttpResponse:
    """Returns options for the browser's script. The answer goes to `add_passkey`."""
    try:
        check_password(request)
        options, challenge = passkeys.options(request.user)
    except CountersignError as error:
        return JsonResponse({"error": localized(str(error))}, status=403)
    request.session[CHALLENGE] = [challenge, int(time.time())]
    return JsonResponse({"publicKey": options})


@page("", "POST", before_factor=True)
def add_passkey(request: ConsoleRequest) -> HttpResponse:
    # Taken out first: it is good for one answer.
    challenge, since = request.session.pop(CHALLENGE, ["", 0])
    if time.time() - since > VALID_S:
        messages.error(request, _("That expired, or was never begun. Add the passkey again."))
        return _profile(request)
    name, answer = request.POST.get("name", ""), request.POST.get("answer", "")
    added = _("The passkey is added. You can confirm decisions with it.")
    return _add_factor(
        request,
        lambda: passkeys.add(
            request.user,
            name,
            challenge=challenge,
            answer=answer,
            session_key=request.session.session_key or "",
        ),
        added,
    )


@page("", "POST", before_factor=True)
def passkey(request: ConsoleRequest, pk: int) -> HttpResponse:
    """Renames or removes a passkey."""
    own = get_object_or_404(Passkey.objects.usable().filter(person=request.user), pk=pk)

    def remove() -> None:
        check_password(request)
        passkeys.remove(own)

    if "remove" in request.POST:
        return _apply(request, remove, _("“%s” is removed.") % own.name)
    name = request.POST.get("name", "")
    return _apply(request, lambda: passkeys.rename(own, name), _("The passkey has its new name."))


@page("", "POST", before_factor=True)
def code_app(request: ConsoleRequest) -> HttpResponse:
    def begin() -> None:
        check_password(request)
        one_time_codes.begin(request.user)

    return _apply(request, begin, _("Now read the picture with the app, and type what it shows."))


@page("", before_factor=True)
def picture(request: ConsoleRequest) -> HttpResponse:
    """Only until it is confirmed: later it would be for whoever has the session."""
    app = get_object_or_404(CodeApp, person=request.user, confirmed_at=None)
    return HttpResponse(one_time_codes.picture(app), content_type="image/svg+xml")


@page("", "POST", before_factor=True)
def confirm_code_app(request: ConsoleRequest) -> HttpResponse:
    code = request.POST.get("code", "")
    return _add_factor(
        request,
        lambda: one_time_codes.confirm(
            request.user, code, session_key=request.session.session_key or ""
        ),
        _("The app is set up. Its codes confirm decisions where no passkey can."),
    )


@page("", "POST", before_factor=True)
def remove_code_app(request: ConsoleRequest) -> HttpResponse:
    app = CodeApp.objects.filter(person=request.user).first()
    if app is None:
        raise Http404

    def remove() -> None:
        if app.confirmed_at:
            check_password(request)
        one_time_codes.remove(request.user)

    return _apply(request, remove, _("The app's codes count no longer."))


@page("", "POST", before_factor=True)
def make_recovery_codes(request: ConsoleRequest) -> HttpResponse:
    try:
        check_password(request)
    except CountersignError as error:
        messages.error(request, str(error))
        return _profile(request)
    return _with_recovery_codes(request)


def _add_factor(request: ConsoleRequest, act: Callable[[], object], said: str) -> HttpResponse:
    """With the first factor come recovery codes."""
    is_first = not request.user.has_second_factor
    try:
        act()
    except CountersignError as error:
        messages.error(request, str(error))
        return _profile(request)
    messages.success(request, said)
    return _with_recovery_codes(request) if is_first else _profile(request)


def _with_recovery_codes(request: ConsoleRequest) -> HttpResponse:
    """Draws the page itself, without a redirect: the codes are kept nowhere."""
    context = {
        "section": "profile",
        "codes": recovery_codes.make(request.user),
        "there": request.session.pop(AFTER, f"{reverse('accounts:profile')}#proving"),
    }
    return render(request, "accounts/recovery_codes.html", context)


def check_password(request: HttpRequest) -> None:
    """Raises AccountRefused and TooManyAttempts."""
    assert isinstance(request.user, User)
    if not request.user.has_usable_password():
        raise services.AccountRefused(_("Set a password first: it is asked for before this."))
    if not services.is_password_of(request.user, request.POST.get("password", "")):
        raise services.AccountRefused(_("That is not your password."))


def _apply(request: ConsoleRequest, act: Callable[[], object], said: str) -> HttpResponse:
    try:
        act()
    except CountersignError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, said)
    return _profile(request)


def _profile(request: ConsoleRequest) -> HttpResponse:
    if request.user.lacks_factor:
        return redirect("accounts:set_up_factor")
    there = redirect("accounts:profile")
    there["Location"] += "#proving"
    return there
