"""The page on which a user allows a client to act as an agent of theirs.

Source: OAuth 2.1, 4.1; RFC 9207; RFC 9700, 4.11. Only a press of the user's leads away from it:
a request that is wrong is answered here, wherever it wants its answer.
"""

from __future__ import annotations

import secrets
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
from accounts.agent_sign_in.grants import CHALLENGE, TokenRefused
from accounts.dpop import is_thumbprint
from accounts.http import ConsoleRequest
from accounts.models import SignInClient, User
from accounts.resources import canonical_resource
from audit.services import record
from core import english, seal
from core.errors import CountersignError
from core.http import is_repeated, page
from core.request_rate import RequestRate
from gateway.http.resource_metadata import resource_of
from gateway.views.agent_sign_in.consent_facts import RequestRejected, agent_in, consent_facts
from gateway.views.agent_sign_in.frames import not_in_frames
from gateway.views.agent_sign_in.open_endpoint import SIGNS_IN, toolset_at
from registry import services as registry
from registry.managed import ManagedElsewhere
from registry.models import Toolset

_SEALED, LASTS_S = "agent sign-in", 600
STATE_MAX = 2000
NO_ADDRESS = english.gettext("The client names no address where users sign in agents.")
NO_TOOLSET = english.gettext("Policy files manage every toolset where users sign in agents.")
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
    # One page gives one code.
    page: str


class TooManyPages(RequestRejected):
    """The user opened more pages in a minute than they are let."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(english.gettext("Too many requests. Try again in a minute."))
        self.wait_s = wait_s


@not_in_frames
@page(SIGNS_IN, "GET", "HEAD", "POST")
def authorize(request: ConsoleRequest) -> HttpResponse:
    try:
        if request.method == "POST":
            return _decide(request)
        if wait_s := PAGES.wait_s(str(request.user.pk)):
            raise TooManyPages(wait_s)
        asked = _read(request.GET)
        # First: where nothing is switched on, no client's document is read.
        toolsets = [_toolset(asked)] if asked.resource else _open_toolsets()
        client = _client(asked)
        if not asked.resource:
            toolsets = _joinable(toolsets, request.user, client)
        if len(toolsets) > 1:
            return _choose(request, client, toolsets)
        if not asked.resource:
            asked = asked._replace(resource=resource_of(toolsets[0].slug))
        return _consent(request, asked, client, toolsets[0])
    except (
        RequestRejected,
        ClientRefused,
        TokenRefused,
        AccountRefused,
        ManagedElsewhere,
    ) as error:
        return _rejected(request, error)


def _rejected(request: ConsoleRequest, error: CountersignError) -> HttpResponse:
    named = {name: request.GET.get(name, "") for name in ("client_id", "redirect_uri")}
    refusals.agent_sign_in(request, str(error), by=request.user, **named)
    is_flood = isinstance(error, TooManyPages)
    answer = render(
        request,
        "gateway/sign_in_rejected.html",
        {"why": str(error)},
        status=429 if is_flood else 400,
    )
    if isinstance(error, TooManyPages):
        answer["Retry-After"] = str(error.wait_s)
    return answer


def _read(given: QueryDict) -> SignInRequest:
    if is_repeated(given, PARAMETERS):
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
        canonical_resource(given.get("resource", "")),
        state,
        jkt,
        secrets.token_urlsafe(16),
    )


def _client(asked: SignInRequest) -> SignInClient:
    client = clients.find_client(asked.client_id)
    if not redirects.is_one_of(asked.redirect_uri, client.redirect_uris):
        raise RequestRejected(english.gettext("The redirect address is none of the client's."))
    return client


def _toolset(asked: SignInRequest) -> Toolset:
    found = toolset_at(asked.resource)
    if found is None:
        raise RequestRejected(NO_ADDRESS)
    return found


def _open_toolsets() -> list[Toolset]:
    """Toolsets for a client that names no address, as before RFC 8707 (MCP 2025-03-26)."""
    found = list(Toolset.objects.filter(agent_sign_in=True).order_by("slug"))
    if not found:
        raise RequestRejected(NO_ADDRESS)
    return found


def _joinable(toolsets: list[Toolset], person: User, client: SignInClient) -> list[Toolset]:
    """Without those whose policy file names other agents: their consent would end in an error."""
    agent = grants.agent_of(person, client)
    found = [one for one in toolsets if registry.may_assign(one, agent, by=person)]
    if not found:
        raise RequestRejected(NO_TOOLSET)
    return found


def _choose(request: ConsoleRequest, client: SignInClient, toolsets: list[Toolset]) -> HttpResponse:
    """Has the user name the address, which then stands in the request as if the client had."""
    said = request.GET.dict()
    ways = [(one, urlencode({**said, "resource": resource_of(one.slug)})) for one in toolsets]
    return render(request, "gateway/choose_toolset.html", {"client": client, "ways": ways})


def _consent(
    request: ConsoleRequest, asked: SignInRequest, client: SignInClient, toolset: Toolset
) -> HttpResponse:
    clients.note_page(client)
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
        page=asked.page,
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
    separator = "&" if "?" in asked.redirect_uri else "?"
    return _ToClient(f"{asked.redirect_uri}{separator}{urlencode(named)}")
