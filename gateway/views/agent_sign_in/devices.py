"""Sign-in of devices that have no browser: their endpoint, and the page of their users.

Source: RFC 8628. The consent is that of other clients; the code is typed, and never followed alone.
"""

from __future__ import annotations

import time
from typing import NamedTuple
from urllib.parse import urlencode

import orjson
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from accounts import attempts, refusals
from accounts.actors import AccountRefused
from accounts.agent_sign_in import clients, devices
from accounts.agent_sign_in.clients import ClientRefused
from accounts.attempts import TooManyAttempts
from accounts.http import ConsoleRequest
from accounts.models import Attempt, DeviceCode, SignInClient, User
from core import english, seal
from core.http import page
from core.request_rate import RequestRate
from gateway.views.agent_sign_in.client_authentication import shown_client
from gateway.views.agent_sign_in.consent_facts import RequestRejected, agent_in, consent_facts
from gateway.views.agent_sign_in.frames import not_in_frames
from gateway.views.agent_sign_in.open_endpoint import (
    SIGNS_IN,
    OAuthError,
    check_rate,
    form_of,
    needed,
    network_of,
    open_endpoint,
    toolset_at,
)
from registry.managed import ManagedElsewhere
from registry.models import Toolset

# Of one address in an hour.
STARTS = RequestRate(30, 3600.0)
_SEALED = "device sign-in"
TOO_MANY = english.gettext("Too many devices of this address ask for a code.")
ANSWERED = english.gettext("The device was answered before, or its code has expired.")


class _WrongCode(RequestRejected):
    """No device waits with the code that was typed."""


class _Question(NamedTuple):
    """A device's question to its user, all of it checked."""

    row: DeviceCode
    client: SignInClient
    toolset: Toolset


@open_endpoint("POST")
def device_authorization(request: HttpRequest) -> HttpResponse:
    given = form_of(request)
    resource = needed(given, "resource")
    _check_start(request, resource, given.get("client_id", ""))
    client_id = shown_client(request, given).client_id
    try:
        clients.check_device_client(client_id)
    except ClientRefused as error:
        refusals.agent_sign_in(request, str(error), client_id=client_id)
        raise OAuthError("invalid_client", str(error), 401) from error
    start = devices.begin(client_id, resource, network_of(request))
    there = settings.PUBLIC_URL + reverse("gateway:device")
    said = {
        **start._asdict(),
        "verification_uri": there,
        "verification_uri_complete": f"{there}?{urlencode({'user_code': start.user_code})}",
        "expires_in": int(devices.LASTS.total_seconds()),
        "interval": devices.INTERVAL_S,
    }
    return JsonResponse(said)


def _check_start(request: HttpRequest, resource: str, client_id: str) -> None:
    """Before any signature is checked. Raises OAuthError."""
    try:
        check_rate(request, STARTS)
    except OAuthError:
        # Not the answer, which has another number each second: each would be an entry.
        refusals.agent_sign_in(request, TOO_MANY, client_id=client_id)
        raise
    if toolset_at(resource) is None:
        why = english.gettext("The client names no address where users sign in agents.")
        refusals.agent_sign_in(request, why, client_id=client_id)
        raise OAuthError("invalid_target", why)


@not_in_frames
@page(SIGNS_IN, "GET", "HEAD", "POST")
def device(request: ConsoleRequest) -> HttpResponse:
    try:
        if "decision" in request.POST:
            return _decide(request)
        if request.method == "POST":
            return _ask(request, _question(_typed(request)))
        # Only into the field: a link that somebody sent asks nothing.
        typed = request.GET.get("user_code", "")[:20]
        return render(request, "gateway/device.html", {"typed": typed})
    except TooManyAttempts as error:
        return render(request, "gateway/device.html", {"why": str(error)}, status=429)
    except _WrongCode as error:
        refusals.agent_sign_in(request, str(error), by=request.user)
        context = {"why": str(error), "typed": request.POST.get("user_code", "")[:20]}
        return render(request, "gateway/device.html", context, status=400)
    except (RequestRejected, ClientRefused, AccountRefused, ManagedElsewhere) as error:
        refusals.agent_sign_in(request, str(error), by=request.user)
        return render(request, "gateway/sign_in_rejected.html", {"why": str(error)}, status=400)


def _typed(request: ConsoleRequest) -> DeviceCode:
    """Raises TooManyAttempts, and RequestRejected where no device waits with this code."""
    attempt = attempts.begin(Attempt.Kind.DEVICE, request.user)
    found = devices.find(request.POST.get("user_code", "")[:100])
    if found is None:
        attempts.wrong(attempt, request.user.username)
        raise _WrongCode(english.gettext("No device waits with this code."))
    attempts.right(attempt)
    return found


def _question(row: DeviceCode) -> _Question:
    toolset = toolset_at(row.resource)
    if toolset is None:
        raise RequestRejected(english.gettext("Agents are no longer signed in there."))
    client = clients.find_client(row.client_id)
    if not client.device_flow:
        raise RequestRejected(english.gettext("The client is none for devices."))
    return _Question(row, client, toolset)


def _ask(request: ConsoleRequest, asked: _Question) -> HttpResponse:
    context = {
        **consent_facts(request.user, asked.client, asked.toolset, asked.row.resource),
        "action": reverse("gateway:device"),
        "device": asked.row,
        "sealed": _seal(request.user, asked.row),
    }
    return render(request, "gateway/consent.html", context)


def _seal(person: User, row: DeviceCode) -> str:
    """Opens for this user alone, while the device waits."""
    content = orjson.dumps([int(row.expires_at.timestamp()), row.pk])
    return seal.to_text(seal.seal(_SEALED, content, place=str(person.pk)))


def _unseal(person: User, text: str) -> DeviceCode:
    try:
        content = seal.unseal(_SEALED, seal.from_text(text), place=str(person.pk))
    except (seal.Unsealable, ValueError) as error:
        said = english.gettext("The consent page is of another user, or was changed.")
        raise RequestRejected(said) from error
    until, pk = orjson.loads(content)
    found = DeviceCode.objects.filter(pk=pk).first()
    if until < time.time() or found is None:
        raise RequestRejected(english.gettext("The consent page is too old. Start again."))
    return found


def _decide(request: ConsoleRequest) -> HttpResponse:
    row = _unseal(request.user, request.POST.get("request", ""))
    is_allowed = request.POST.get("decision") == "allow"
    if row.person_id == request.user.pk:
        refusals.agent_sign_in(request, ANSWERED, by=request.user)
        context = {"allowed": True, "why": ANSWERED}
        return render(request, "gateway/device_done.html", context, status=400)
    _write(request.user, _question(row), is_allowed=is_allowed)
    return render(request, "gateway/device_done.html", {"allowed": is_allowed})


@transaction.atomic
def _write(person: User, asked: _Question, *, is_allowed: bool) -> None:
    agent = agent_in(asked.toolset, person, asked.client) if is_allowed else None
    if not devices.decide(asked.row, asked.client, person=person, agent=agent):
        raise RequestRejected(ANSWERED)
