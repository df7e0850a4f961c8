"""Clients of users that sign what they ask for tokens with, checked.

Source: RFC 7523, 2.2 and 3; draft-ietf-oauth-client-id-metadata-document, 6.2.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from django.conf import settings

from accounts.agent_sign_in import clients
from accounts.agent_sign_in.clients import ClientRefused
from accounts.models import SignInClient
from accounts.oidc.metadata import AGENT, ProviderAway, ProviderFailed, key_among, signing_key
from accounts.oidc.workload_issuers import WorkloadIssuer
from accounts.workloads import assertions
from accounts.workloads.assertions import AssertionRefused
from accounts.workloads.public_keys import RSA_BITS_MIN
from core.english import gettext as _
from core.guarded_http import RequestFailed
from core.request_rate import RequestRate

# So far ahead may be an assertion's end.
ENDS_MAX_S = 600
# A client's document is read anew for a key that is not known: so often, whoever asks.
RENEWALS = RequestRate(1, 60.0)
UNSIGNED = _("The client has to sign its request (private_key_jwt).")


class ShownClient(NamedTuple):
    """Which client asks. `is_signed`: it proved that."""

    client_id: str
    is_signed: bool


def authenticate(client_id: str, assertion: str, *, audiences: Collection[str]) -> ShownClient:
    """The client that is named, or that the assertion is of. Raises AssertionRefused, and
    ProviderAway where its keys cannot be asked for. One that no user allowed anything gets
    nothing, so nothing is asked for it."""
    named = client_id or assertions.client_of(assertion)
    client = SignInClient.objects.filter(client_id=named).exclude(used_at=None).first()
    if client is None:
        return ShownClient(named, is_signed=False)
    return ShownClient(named, is_signed=prove(client, assertion, audiences=audiences))


def prove(client: SignInClient, assertion: str, *, audiences: Collection[str]) -> bool:
    """Whether the client signed its request, where it may leave that out. Raises AssertionRefused
    and ProviderAway."""
    if not assertion:
        if client.signs_requests:
            raise AssertionRefused(UNSIGNED)
        return False
    claims = _claims(client, assertion)
    assertions.check_own(client.client_id, claims, audiences=audiences)
    assertions.use_up(client.client_id, claims)
    return True


def _claims(client: SignInClient, assertion: str) -> dict[str, Any]:
    try:
        return assertions.read(assertion, partial(_key, client), max_s=ENDS_MAX_S)
    except ProviderAway:
        raise
    except ProviderFailed as error:
        raise AssertionRefused(str(error)) from error


def _key(client: SignInClient, header: dict[str, Any]) -> jwt.PyJWK:
    """Raises ProviderFailed."""
    try:
        found = _known_key(client, header)
    except ProviderAway:
        raise
    except ProviderFailed:
        found = _known_key(_renewed(client), header)
    if isinstance(found.key, RSAPublicKey) and found.key.key_size < RSA_BITS_MIN:
        raise ProviderFailed(_("An RSA key needs %d bits at least.") % RSA_BITS_MIN)
    return found


def _known_key(client: SignInClient, header: dict[str, Any]) -> jwt.PyJWK:
    if client.signing_alg not in ("", header.get("alg")):
        raise ProviderFailed(_("The client declared another algorithm."))
    if client.keys_url:
        networks = tuple(settings.CLIENT_NETWORKS)
        issuer = WorkloadIssuer(client.client_id, client.keys_url, networks)
        return signing_key(issuer, header, asked_by=AGENT)
    return key_among(client.keys, header)


def _renewed(client: SignInClient) -> SignInClient:
    """The client after its document was read again, where that is due."""
    if RENEWALS.wait_s(client.client_id):
        return client
    try:
        return clients.renew(client)
    except (RequestFailed, ClientRefused) as error:
        raise ProviderFailed(str(error)) from error
