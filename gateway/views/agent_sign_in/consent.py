"""The page on which a user allows a client to act as an agent of theirs.

Source: OAuth 2.1, 4.1; RFC 9207; RFC 9700, 4.11. Only a press of the user's leads away from it:
a request that is wrong is answered here, wherever it wants its answer.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import orjson
from django.conf import settings
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse

from accounts import refusals
from accounts.actors import AccountRefused
from accounts.agent_sign_in import clients, grants, redirects
from accounts.agent_sign_in.clients import ClientRefused
from accounts.agent_sign_in.grants import CHALLENGE
from accounts.dpop import is_thumbprint
from accounts.http import ConsoleRequest
from accounts.models import SignInClient, User
from audit.services import record
from core import english, seal
from core.http import page
from core.request_rate import RequestRate
from gateway.views.agent_sign_in.consent_facts import RequestRejected, agent_in, consent_facts
from gateway.views.agent_sign_in.open_endpoint import SIGNS_IN, toolset_at
from registry.managed import ManagedElsewhere
from registry.models import Toolset

_SEALED, LASTS_S = "agent sign-in", 600
STATE_MAX = 2000
# Of one user in a minute: each may read a client's document.
PAGES = RequestRate(30, 60.0)
PARAMETERS = (
    "response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method",
    "resource", "state", "dpop_jkt",
)  # fmt: skip


class SignInRequest(NamedTuple):
    """A request that was checked, as the consent page seals it."""

    client_id: str
    redirect_uri: str
    challenge: str
    resource: str
    state: str
    jkt: str


@page(SIGNS_IN, "GET", "HEAD", "POST")
def authorize(request: ConsoleRequest) -> HttpResponse:
    try:
        if request.method == "POST":
            return _decide(request)
        if PAGES.wait_s(str(request.user.pk)):
            raise RequestRejected(english.gettext("Too many requests. Try again in a minute."))
        asked = _read(request.GET)
        # First: where nothing is switched on, no client's document is read.
        toolset = _toolset(asked)
        return _consent(request, asked, _client(asked), toolset)
    except (RequestRejected, ClientRefused, AccountRefused, ManagedElsewhere) as error:
        named = request.GET.get("client_id", "")
        refusals.agent_sign_in(request, str(error), by=request.user, client_id=named)
        return render(request, "gateway/sign_in_rejected.html", {"why": str(error)}, status=400)


def _read(given: QueryDict) -> SignInRequest:
    if any(len(given.getlist(name)) > 1 for name in PARAMETERS):
        raise RequestRejected(english.gettext("The client sent a parameter twice."))
    if given.get("response_type") != "code":
        raise RequestRejected(english.gettext("The client does not use authorization codes."))
    challenge = given.get("code_challenge", "")
    if given.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(challenge):
        raise RequestRejected(english.gettext("The client does not use PKCE with S256."))
    state = given.get("state", "")
    if len(state) > STATE_MAX:
        raise RequestRejected(english.gettext("The client's state is too long."))
    jkt = given.get("dpop_jkt", "")
    if jkt and not is_thumbprint(jkt):
        raise RequestRejected(english.gettext("The client's “dpop_jkt” is no thumbprint of a key."))
    return SignInRequest(
        given.get("client_id", ""),
        given.get("redirect_uri", ""),
        challenge,
        given.get("resource", ""),
        state,
        jkt,
    )


def _client(asked: SignInRequest) -> SignInClient:
    client = clients.find_client(asked.client_id)
    if not redirects.is_one_of(asked.redirect_uri, client.redirect_uris):
        raise RequestRejected(english.gettext("The redirect address is none of the client's."))
    return client


def _toolset(asked: SignInRequest) -> Toolset:
    found = toolset_at(asked.resource)
    if found is None:
        raise RequestRejected(
            english.gettext("The client names no address where users sign in agents.")
        )
    return found


def _consent(
    request: ConsoleRequest, asked: SignInRequest, client: SignInClient, toolset: Toolset
) -> HttpResponse:
    context = {
        **consent_facts(request.user, client, toolset, asked.resource),
        "action": reverse("gateway:authorize"),
        "redirect_uri": asked.redirect_uri,
        "redirect_place": redirects.place_of(asked.redirect_uri),
        "sealed": _seal(request.user, asked),
    }
    answer = render(request, "gateway/consent.html", context)
    # The form's answer leads to the client: browsers look at redirects of forms, too.
    answer._csp_update = {  # type: ignore[attr-defined]
        "form-action": [redirects.source_of(asked.redirect_uri)]
    }
    return answer


def _seal(person: User, asked: SignInRequest) -> str:
    """Opens for this user alone, and for ten minutes."""
    content = orjson.dumps([int(time.time()) + LASTS_S, *asked])
    return seal.to_text(seal.seal(_SEALED, content, place=str(person.pk)))


def _unseal(person: User, text: str) -> SignInRequest:
    try:
        content = seal.unseal(_SEALED, seal.from_text(text), place=str(person.pk))
    except (seal.Unsealable, ValueError) as error:
        said = english.gettext("The consent page is of another user, or was changed.")
        raise RequestRejected(said) from error
    until, *asked = orjson.loads(content)
    if until < time.time():
        raise RequestRejected(english.gettext("The consent page is too old. Start again."))
    return SignInRequest(*asked)


def _decide(request: ConsoleRequest) -> HttpResponse:
    asked = _unseal(request.user, request.POST.get("request", ""))
    client, toolset = _client(asked), _toolset(asked)
    if request.POST.get("decision") != "allow":
        record(
            "agent_sign_in.denied",
            actor=request.user.actor,
            client=client.name,
            client_id=client.client_id,
            resource=asked.resource,
        )
        return _back(asked, error="access_denied")
    return _back(asked, code=_allow(request.user, client, toolset, asked))


@transaction.atomic
def _allow(person: User, client: SignInClient, toolset: Toolset, asked: SignInRequest) -> str:
    return grants.allow(
        client=client,
        person=person,
        agent=agent_in(toolset, person, client),
        resource=asked.resource,
        redirect_uri=asked.redirect_uri,
        challenge=asked.challenge,
        jkt=asked.jkt,
    )


class _ToClient(HttpResponseRedirect):
    """Leads to the client, which may be an app with a scheme of its own."""

    def __init__(self, uri: str) -> None:
        self.allowed_schemes = [urlsplit(uri).scheme]
        super().__init__(uri)


def _back(asked: SignInRequest, **said: str) -> HttpResponse:
    named: dict[str, Any] = {**said, "iss": settings.PUBLIC_URL}
    if asked.state:
        named["state"] = asked.state
    separator = "&" if urlsplit(asked.redirect_uri).query else "?"
    return _ToClient(f"{asked.redirect_uri}{separator}{urlencode(named)}")
