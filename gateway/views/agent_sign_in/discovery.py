"""Metadata of our authorization server.

Source: RFC 8414; OpenID Connect Discovery 1.0, which some clients ask in its place.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from accounts import dpop
from accounts.agent_sign_in import id_jag
from accounts.agent_sign_in.client_keys import SIGNED
from accounts.agent_sign_in.clients import CODE_GRANT, DEVICE_GRANT
from accounts.models import AgentToken
from accounts.oidc.metadata import ALGORITHMS
from gateway.http.resource_metadata import SCOPE
from gateway.views.agent_sign_in.open_endpoint import open_endpoint
from registry.models import Toolset

GRANT_TYPES = [CODE_GRANT, "refresh_token", "client_credentials", DEVICE_GRANT]


@open_endpoint("GET", "HEAD")
def authorization_server(request: HttpRequest) -> HttpResponse:
    return _answer(_metadata())


@open_endpoint("GET", "HEAD")
def openid_configuration(request: HttpRequest) -> HttpResponse:
    """We give no ID tokens; readers of this document refuse it without these three."""
    more = {
        "jwks_uri": _at("gateway:sign_in_keys"),
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }
    return _answer(_metadata() | more)


@open_endpoint("GET", "HEAD")
def keys(request: HttpRequest) -> HttpResponse:
    """None: our access tokens are read by us alone."""
    return _answer({"keys": []})


def _answer(said: dict[str, Any]) -> HttpResponse:
    is_open = Toolset.objects.filter(agent_sign_in=True).exists()
    if not is_open and not AgentToken.objects.workloads().exists():
        return JsonResponse({"error": "not_found"}, status=404)
    return JsonResponse(said)


def _metadata() -> dict[str, Any]:
    said = {
        "issuer": settings.PUBLIC_URL,
        "authorization_endpoint": _at("gateway:authorize"),
        "token_endpoint": _at("gateway:token"),
        "revocation_endpoint": _at("gateway:revoke"),
        "introspection_endpoint": _at("gateway:introspect"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "device_authorization_endpoint": _at("gateway:device_authorization"),
        "grant_types_supported": grant_types(),
        "token_endpoint_auth_methods_supported": ["none", SIGNED],
        "token_endpoint_auth_signing_alg_values_supported": list(ALGORITHMS),
        "revocation_endpoint_auth_methods_supported": ["none", SIGNED],
        "revocation_endpoint_auth_signing_alg_values_supported": list(ALGORITHMS),
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": list(dpop.ALGORITHMS),
        "scopes_supported": [SCOPE],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
    }
    if id_jag.is_switched_on():
        said["authorization_grant_profiles_supported"] = [id_jag.PROFILE]
    if settings.CLIENT_REGISTRATION:
        said["registration_endpoint"] = _at("gateway:register_client")
    return said


def grant_types() -> list[str]:
    return [*GRANT_TYPES, *([id_jag.JWT_BEARER_GRANT] if id_jag.is_switched_on() else [])]


def _at(name: str) -> str:
    return settings.PUBLIC_URL + reverse(name)
