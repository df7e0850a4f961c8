"""Sign-ins that a company's identity provider allows in place of the user: ID-JAGs, checked.

Source: draft-ietf-oauth-identity-assertion-authz-grant; MCP ext-auth, enterprise-managed
authorization; RFC 7523, 2.1 and 3.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jwt
from django.conf import settings

from accounts.models import Identity, User
from accounts.oidc.metadata import AGENT, ProviderAway, ProviderFailed, signing_key
from accounts.oidc.providers import IdentityProvider, usable_providers
from accounts.oidc.signed_tokens import is_name
from accounts.resources import canonical_resource
from accounts.workloads import assertions
from accounts.workloads.assertions import AssertionRefused
from core.english import gettext as _

JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
# How the metadata of our authorization server names what it takes by that grant.
PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"
TYPES = ("oauth-id-jag+jwt",)
# So far ahead may be its end: a client asks for another one each time.
ENDS_MAX_S = 600


class AllowedSignIn(NamedTuple):
    """A provider's word that a client may act for a user here, once. `subject`: the user's account
    there; `claims`: the content of the ID-JAG."""

    person: User
    issuer: str
    subject: str
    token_id: str
    resource: str
    claims: dict[str, Any]


def is_switched_on() -> bool:
    return any(one.id_jag_clients for one in usable_providers())


def is_named(client_id: str) -> bool:
    """Whether the host's administrator named this client for one of the providers."""
    return any(client_id in one.id_jag_clients for one in usable_providers())


def check(id_jag: str, *, client_id: str, resource: str) -> AllowedSignIn:
    """`resource`: the address that the client asks for, empty where the ID-JAG alone has it.
    Raises AssertionRefused, ProviderAway where the provider's keys cannot be asked for."""
    provider = _provider(id_jag, client_id)
    try:
        key_of = partial(signing_key, provider, asked_by=AGENT)
        claims = assertions.read(id_jag, key_of, max_s=ENDS_MAX_S, types=TYPES)
    except ProviderAway:
        raise
    except ProviderFailed as error:
        raise AssertionRefused(str(error)) from error
    _check(claims, client_id)
    return AllowedSignIn(
        person=_person(provider, claims["sub"]),
        issuer=provider.issuer,
        subject=claims["sub"],
        token_id=claims["jti"],
        resource=_resource(claims, resource),
        claims=claims,
    )


def use_up(allowed: AllowedSignIn) -> None:
    """Raises AssertionRefused for one that was shown before."""
    assertions.use_up(allowed.issuer, allowed.claims)


def _provider(id_jag: str, client_id: str) -> IdentityProvider:
    """The one that it says it is from, if that may name this client."""
    try:
        issuer = jwt.decode(id_jag, options={"verify_signature": False}).get("iss")
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
        raise AssertionRefused(_("The assertion cannot be read.")) from None
    named = [one for one in usable_providers() if client_id in one.id_jag_clients]
    found = next((one for one in named if one.issuer == issuer), None)
    if found is None:
        raise AssertionRefused(_("The assertion's issuer signs in no users of this client here."))
    return found


def _check(claims: dict[str, Any], client_id: str) -> None:
    """`iss` and the times were checked."""
    # One SDK writes every address with a slash at its end.
    ours = (settings.PUBLIC_URL, f"{settings.PUBLIC_URL}/")
    if claims["aud"] not in (*ours, *([one] for one in ours)):
        raise AssertionRefused(_("The assertion is for another authorization server."))
    if claims.get("client_id") != client_id:
        raise AssertionRefused(_("The assertion is of another client."))
    if not is_name(claims.get("jti")):
        raise AssertionRefused(_("The assertion lacks “jti”, by which it counts once."))
    if "iat" not in claims or not is_name(claims["sub"]):
        raise AssertionRefused(_("The assertion lacks “iat”, or names nobody."))
    if "cnf" in claims:
        raise AssertionRefused(_("The assertion is bound to something that is not checked here."))


def _resource(claims: dict[str, Any], asked: str) -> str:
    """The one address: of both where both name one."""
    named = claims.get("resource")
    if isinstance(named, list) and len(named) == 1:
        named = named[0]
    if named is None:
        named = asked
    if not isinstance(named, str) or not named:
        raise AssertionRefused(_("The assertion is for another address."))
    resource = canonical_resource(named)
    if asked not in ("", resource):
        raise AssertionRefused(_("The assertion is for another address."))
    return resource


def _person(provider: IdentityProvider, subject: str) -> User:
    found = (
        Identity.objects.select_related("person")
        .filter(issuer=provider.issuer, subject=subject, disconnected_at=None)
        .first()
    )
    if found is None:
        raise AssertionRefused(_("No user here has connected this account of the provider."))
    if not found.person.is_active:
        raise AssertionRefused(_("The user of this account is disabled."))
    return found.person
