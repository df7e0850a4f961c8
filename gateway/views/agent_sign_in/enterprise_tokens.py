"""Access tokens for clients that a company's identity provider allows to act for its people.

Source: draft-ietf-oauth-identity-assertion-authz-grant, 4.4; RFC 7523, 2.1. Nobody is asked here:
that is the provider's administrators' to decide.
"""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse

from accounts import refusals
from accounts.actors import AccountRefused
from accounts.agent_sign_in import access_tokens, clients, grants, id_jag
from accounts.agent_sign_in.clients import ClientRefused
from accounts.agent_sign_in.grants import TokenRefused
from accounts.agent_sign_in.id_jag import AllowedSignIn
from accounts.models import SignInClient
from accounts.oidc.metadata import ProviderAway
from accounts.workloads import assertions
from accounts.workloads.assertions import AssertionRefused
from core.english import gettext as _
from core.errors import CountersignError
from gateway.http.resource_metadata import SCOPE
from gateway.views.agent_sign_in.client_authentication import prove
from gateway.views.agent_sign_in.consent_facts import RequestRejected, agent_in
from gateway.views.agent_sign_in.open_endpoint import (
    SIGNS_IN,
    OAuthError,
    needed,
    proved_key,
    toolset_at,
)
from registry.managed import ManagedElsewhere


def answer(request: HttpRequest, given: dict[str, str]) -> HttpResponse:
    """Raises OAuthError."""
    client, jkt = _client(request, given), proved_key(request)
    shown = needed(given, "assertion")
    try:
        asked = given.get("resource", "")
        allowed = id_jag.check(shown, client_id=client.client_id, resource=asked)
        access_token = _access_token(client, allowed, jkt)
    except AssertionRefused as error:
        # One answer for all: who has an account here, and why not, is the operator's to read.
        raise _refused(request, client, error, "The assertion is not accepted.") from error
    except (TokenRefused, RequestRejected, AccountRefused, ManagedElsewhere) as error:
        raise _refused(request, client, error, str(error), allowed) from error
    except ProviderAway as error:
        why = "The provider cannot be asked for its keys right now. Try again soon."
        raise OAuthError("temporarily_unavailable", why, 503) from error
    said = {
        "access_token": access_token,
        "token_type": "DPoP" if jkt else "Bearer",
        "expires_in": access_tokens.LIFETIME_S,
        "scope": SCOPE,
    }
    return JsonResponse(said)


def _client(request: HttpRequest, given: dict[str, str]) -> SignInClient:
    """The client, which the host's file names, so that its document may be read; proved where it
    has a key. Raises OAuthError."""
    named = given.get("client_id", "")
    named = named or assertions.client_of(given.get("client_assertion", ""))
    try:
        if not id_jag.is_named(named):
            raise ClientRefused(_("No identity provider signs in users of this client here."))
        client = clients.find_client(named)
    except ClientRefused as error:
        refusals.agent_sign_in(request, str(error), client_id=named)
        raise OAuthError("invalid_client", "The client is not known here.", 401) from error
    prove(request, given, client)
    return client


@transaction.atomic
def _access_token(client: SignInClient, allowed: AllowedSignIn, jkt: str) -> str:
    """Raises AssertionRefused, TokenRefused, RequestRejected, AccountRefused, ManagedElsewhere."""
    toolset = toolset_at(allowed.resource)
    if toolset is None or not allowed.person.has_perm(SIGNS_IN):
        raise TokenRefused(_("This user signs in no agents at this address."))
    id_jag.use_up(allowed)
    agent = agent_in(toolset, allowed.person, client)
    return grants.issue_allowed(
        client,
        agent,
        allowed.resource,
        jkt=jkt,
        issuer=allowed.issuer,
        subject=allowed.subject,
        id_jag=allowed.token_id,
    )


def _refused(
    request: HttpRequest,
    client: SignInClient,
    error: CountersignError,
    said: str,
    allowed: AllowedSignIn | None = None,
) -> OAuthError:
    whose = allowed.person.username if allowed else ""
    refusals.agent_sign_in(request, str(error), client_id=client.client_id, person=whose)
    return OAuthError("invalid_grant", said)
