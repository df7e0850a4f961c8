"""Endpoints of clients: tokens, revocation, introspection, registration.

Source: OAuth 2.1, 3.2; RFC 7009; RFC 7662; RFC 7591; RFC 8707.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from accounts import refusals, service_accounts
from accounts.agent_sign_in import access_tokens, clients, devices, grants, id_jag
from accounts.agent_sign_in.client_assertions import ShownClient
from accounts.agent_sign_in.client_keys import SIGNED
from accounts.agent_sign_in.clients import ClientRefused
from accounts.agent_sign_in.devices import DeviceWaits
from accounts.agent_sign_in.grants import Issued, TokenRefused
from accounts.models import SignInClient
from core import strict_json
from core.english import gettext as _
from core.request_rate import RequestRate
from gateway.http.resource_metadata import SCOPE
from gateway.views.agent_sign_in import enterprise_tokens, workload_tokens
from gateway.views.agent_sign_in.client_authentication import shown_client
from gateway.views.agent_sign_in.discovery import grant_types
from gateway.views.agent_sign_in.open_endpoint import (
    OAuthError,
    check_rate,
    form_of,
    is_open,
    is_open_to_workload,
    needed,
    network_of,
    open_endpoint,
    proved_key,
)

# Of one address in an hour.
REGISTRATIONS = RequestRate(settings.CLIENT_REGISTRATIONS, 3600.0)
REGISTRATION_MAX = 16 * 1024
INTROSPECTS = "accounts.view_agenttoken"


@open_endpoint("POST")
def token(request: HttpRequest) -> HttpResponse:
    given = form_of(request)
    if given.get("grant_type") == "client_credentials":
        return workload_tokens.answer(request, given)
    if given.get("grant_type") == id_jag.JWT_BEARER_GRANT:
        return enterprise_tokens.answer(request, given)
    try:
        issued = _issued(given, shown_client(request, given), proved_key(request))
    except DeviceWaits as error:
        raise OAuthError(error.error, "The user has not allowed it.") from error
    except TokenRefused as error:
        # Whoever has a stolen code or token is not the user.
        whose = error.person.username if error.person else ""
        named = given.get("client_id", "")
        refusals.agent_sign_in(request, str(error), client_id=named, person=whose)
        raise _refusal(error, named) from error
    said = {
        "access_token": issued.access_token,
        "token_type": issued.token_type,
        "expires_in": access_tokens.LIFETIME_S,
        "refresh_token": issued.refresh_token,
        "scope": SCOPE,
    }
    return JsonResponse(said)


def _refusal(error: TokenRefused, client_id: str) -> OAuthError:
    """SDKs forget their registration, and begin anew, by `invalid_client` alone."""
    if client_id.startswith(clients.REGISTERED) and not clients.is_known(client_id):
        return OAuthError("invalid_client", _("The client is not known here."), 401)
    return OAuthError("invalid_grant", str(error))


def _issued(given: dict[str, str], shown: ShownClient, jkt: str) -> Issued:
    match given.get("grant_type"):
        case "authorization_code":
            return grants.redeem(
                needed(given, "code"),
                client_id=shown.client_id,
                redirect_uri=needed(given, "redirect_uri"),
                verifier=needed(given, "code_verifier"),
                resource=given.get("resource", ""),
                is_open=is_open,
                jkt=jkt,
            )
        case "refresh_token":
            return grants.refresh(
                needed(given, "refresh_token"),
                client_id=shown.client_id,
                resource=given.get("resource", ""),
                is_open=is_open,
                jkt=jkt,
            )
        case clients.DEVICE_GRANT:
            return devices.redeem(
                needed(given, "device_code"),
                shown=shown,
                is_open=is_open,
                jkt=jkt,
            )
    raise OAuthError("unsupported_grant_type", f"Use one of {', '.join(grant_types())}.")


@open_endpoint("POST")
def revoke(request: HttpRequest) -> HttpResponse:
    """Answers alike whatever the token was (RFC 7009, 2.2); a workload's ends by itself."""
    given = form_of(request)
    grants.revoke(needed(given, "token"), client_id=shown_client(request, given).client_id)
    return JsonResponse({})


@open_endpoint("POST")
def introspect(request: HttpRequest) -> HttpResponse:
    """For service accounts that may view agents' tokens."""
    _check_introspector(request)
    text = needed(form_of(request), "token")
    ends, grant = grants.is_usable(text), grants.grant_of(text)
    if ends is None or grant is None:
        return JsonResponse({"active": False})
    read = access_tokens.read(text)
    resource = grant.resource or (read.resource if read else "")
    may = is_open if grant.resource else is_open_to_workload
    if not may(resource, grant.agent):
        return JsonResponse({"active": False})
    owner = grant.agent.owner.username
    said = {
        "active": True,
        "scope": SCOPE,
        "client_id": grant.client_id,
        "username": owner,
        "sub": owner if grant.resource else grant.client_id,
        "aud": resource,
        "iss": grant.issuer,
        "exp": int(ends),
        "iat": int(grant.created_at.timestamp()),
    }
    jkt = read.jkt if read else grant.jkt
    if read:
        said |= {"token_type": "DPoP" if jkt else "Bearer"}
    if jkt:
        said |= {"cnf": {"jkt": jkt}}
    return JsonResponse(said)


def _check_introspector(request: HttpRequest) -> None:
    scheme, _space, text = request.headers.get("Authorization", "").partition(" ")
    bearer = service_accounts.authenticate(text.strip()) if scheme.lower() == "bearer" else None
    if bearer is None:
        raise OAuthError("invalid_client", "Send a service account's token.", 401)
    if INTROSPECTS not in bearer.scopes:
        said = f"The service account lacks the permission {INTROSPECTS}."
        raise OAuthError("insufficient_scope", said, 403)


@open_endpoint("POST")
def register_client(request: HttpRequest) -> HttpResponse:
    if not settings.CLIENT_REGISTRATION:
        raise OAuthError("access_denied", "Clients do not register themselves here.", 403)
    try:
        said = _document(request)
        clients.check(said)
        # What cannot be registered takes nothing from others behind the same address.
        check_rate(request, REGISTRATIONS)
        client = clients.register(said, network=network_of(request))
    except ClientRefused as error:
        refusals.agent_sign_in(request, str(error))
        raise OAuthError("invalid_client_metadata", str(error)) from error
    except OAuthError:
        refusals.agent_sign_in(request, _("This address registers too many clients."))
        raise
    return JsonResponse(_registered(client), status=201)


def _document(request: HttpRequest) -> Any:
    body = request.read(REGISTRATION_MAX + 1)
    if len(body) > REGISTRATION_MAX:
        raise ClientRefused(_("The client's document is too long."))
    try:
        return strict_json.loads(body)
    except strict_json.Ambiguous as error:
        raise ClientRefused(_("The client's document is no JSON that can be used.")) from error


def _registered(client: SignInClient) -> dict[str, Any]:
    """The answer has what was registered, not what was asked for: no client has a secret."""
    return {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created_at.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": [
            *([clients.CODE_GRANT] if client.redirect_uris else []),
            *([clients.DEVICE_GRANT] if client.device_flow else []),
            "refresh_token",
        ],
        "response_types": ["code"] if client.redirect_uris else [],
        **_registered_keys(client),
        "scope": SCOPE,
    }


def _registered_keys(client: SignInClient) -> dict[str, Any]:
    said = {"token_endpoint_auth_method": SIGNED if client.signs_requests else "none"}
    if client.signing_alg:
        said |= {"token_endpoint_auth_signing_alg": client.signing_alg}
    if client.keys_url:
        return said | {"jwks_uri": client.keys_url}
    return said | ({"jwks": {"keys": client.keys}} if client.keys else {})
