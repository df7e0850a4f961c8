"""Access tokens for programs without a user (client credentials).

Source: RFC 6749, 4.4; RFC 7523, 2.2; RFC 8707, 2.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse

from accounts import refusals
from accounts.dpop import ProofFailed
from accounts.oidc.metadata import ProviderAway
from accounts.workloads.assertions import AssertionRefused
from accounts.workloads.sign_in import ResourceRefused, SignedInWorkload, sign_in
from gateway.http.resource_metadata import SCOPE
from gateway.views.agent_sign_in.client_authentication import ASSERTION_TYPE
from gateway.views.agent_sign_in.open_endpoint import (
    OAuthError,
    is_open_to_workload,
    needed,
    proved_key,
)


def answer(request: HttpRequest, given: dict[str, str]) -> HttpResponse:
    """Raises OAuthError."""
    jkt = proved_key(request)
    issued = _issued(request, given, jkt)
    said = {
        "access_token": issued.access_token,
        "token_type": "DPoP" if jkt else "Bearer",
        "expires_in": issued.lifetime_s,
        "scope": SCOPE,
    }
    return JsonResponse(said)


def _issued(request: HttpRequest, given: dict[str, str], jkt: str) -> SignedInWorkload:
    named = given.get("client_id", "")
    if given.get("client_assertion_type") != ASSERTION_TYPE:
        said = "Programs show a client_assertion here; there are no client secrets."
        refusals.agent_sign_in(request, said, client_id=named)
        raise OAuthError("invalid_client", said, 401)
    try:
        return sign_in(
            needed(given, "client_assertion"),
            client_id=named,
            resource=needed(given, "resource"),
            is_open=is_open_to_workload,
            jkt=jkt,
        )
    except ProofFailed as error:
        refusals.agent_sign_in(request, str(error), client_id=named)
        raise OAuthError("invalid_dpop_proof", str(error)) from error
    except AssertionRefused as error:
        # One answer for all: which ids are known, and why not, is the operator's to read.
        refusals.agent_sign_in(request, str(error), client_id=named)
        raise OAuthError("invalid_client", "The assertion is not accepted.", 401) from error
    except ResourceRefused as error:
        refusals.agent_sign_in(request, str(error), client_id=named)
        raise OAuthError("invalid_target", str(error)) from error
    except ProviderAway as error:
        said = "The issuer cannot be asked for its keys right now. Try again soon."
        raise OAuthError("temporarily_unavailable", said, 503) from error
