"""Which client asks at our endpoints, proved where it has a key. Source: RFC 7523, 2.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from accounts import refusals
from accounts.agent_sign_in import client_assertions
from accounts.agent_sign_in.client_assertions import ShownClient
from accounts.models import SignInClient
from accounts.oidc.metadata import ProviderAway
from accounts.workloads.assertions import AssertionRefused
from gateway.views.agent_sign_in.open_endpoint import OAuthError, needed

Checked = TypeVar("Checked")
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def shown_client(request: HttpRequest, given: dict[str, str]) -> ShownClient:
    """Raises OAuthError."""
    named = given.get("client_id", "")
    shown = _checked(
        request,
        named,
        lambda: client_assertions.authenticate(named, _assertion(given), audiences=_audiences()),
    )
    return shown if shown.client_id else ShownClient(needed(given, "client_id"), is_signed=False)


def prove(request: HttpRequest, given: dict[str, str], client: SignInClient) -> None:
    """Checks that the request is of this client, where that has a key. Raises OAuthError."""
    _checked(
        request,
        client.client_id,
        lambda: client_assertions.prove(client, _assertion(given), audiences=_audiences()),
    )


def _checked(request: HttpRequest, named: str, check: Callable[[], Checked]) -> Checked:
    try:
        return check()
    except AssertionRefused as error:
        refusals.agent_sign_in(request, str(error), client_id=named)
        raise OAuthError("invalid_client", str(error), 401) from error
    except ProviderAway as error:
        said = "The client's keys cannot be asked for right now. Try again soon."
        raise OAuthError("temporarily_unavailable", said, 503) from error


def _assertion(given: dict[str, str]) -> str:
    """Empty where the client shows none."""
    assertion, kind = given.get("client_assertion", ""), given.get("client_assertion_type", "")
    if (assertion or kind) and not (assertion and kind == ASSERTION_TYPE):
        raise AssertionRefused("Show a client_assertion of the type jwt-bearer, or none.")
    return assertion


def _audiences() -> tuple[str, ...]:
    """Our name, with the slash that one SDK writes, or the token endpoint: clients differ."""
    ours = settings.PUBLIC_URL
    return (ours, f"{ours}/", f"{ours}{reverse('gateway:token')}")
