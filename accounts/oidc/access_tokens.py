"""Access tokens of an identity provider, shown by agents: this installation as resource server.

Source: RFC 9068, 4; RFC 8707, 2; RFC 9449, 7.2; MCP 2026-07-28, basic/authorization.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import jwt

from accounts.dpop import is_thumbprint
from accounts.models import Identity
from accounts.oidc.group_mapping import groups_told, token_groups
from accounts.oidc.metadata import AGENT, ProviderFailed, signing_key
from accounts.oidc.providers import IdentityProvider, usable_providers
from accounts.oidc.signed_tokens import SKEW_S, check_texts, is_name, why_refused
from accounts.resources import canonical_resource
from accounts.tokens import Bearer, SignedIn, TokenBook
from core.english import gettext as _

TOKEN_MAX = 16 * 1024
# Nobody can revoke it here alone: it ends soon, or it is not taken.
LIFETIME_MAX_S = 24 * 3600
# ID tokens, logout tokens and assertions are signed by the same keys, and open nothing.
TYPES = ("", "jwt", "at+jwt", "application/at+jwt")
# Some thirty thousand years: whatever is later is no time, and can be too long for a float.
TIME_MAX = 10**12
_UNREADABLE = _("The token cannot be read.")


class ScopeMissing(ProviderFailed):
    """A good token that was given for less; `scope` is what it lacks."""

    def __init__(self, scope: str) -> None:
        super().__init__(_("The token lacks the scope “%s”.") % scope)
        self.scope = scope


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A token before its signature was checked: whose it says it is."""

    header: dict[str, Any]
    provider: IdentityProvider
    client_id: str


def agent_providers() -> list[IdentityProvider]:
    """The providers whose access tokens are taken of agents."""
    return [one for one in usable_providers() if one.agent_tokens]


def token_group_names() -> list[str]:
    """The names by which rules know groups in those tokens."""
    names = (name for one in agent_providers() for name in one.token_groups.values())
    return sorted(set(names))


def issuer_of(token: str) -> str:
    """Which provider a token says it is of; empty where its tokens are not taken."""
    try:
        return _read(token).provider.issuer
    except ProviderFailed:
        return ""


def authenticate(token: str, book: TokenBook, *, resource: str) -> Bearer:
    """The agent behind an access token for `resource`. Raises ProviderFailed.

    Asks the provider for keys where they are not known: never in an event loop.
    """
    claimed = _read(token)
    # Before anything is computed or asked: a stranger's token costs as little as may be.
    if not book.has_client(claimed.provider.issuer, claimed.client_id):
        raise ProviderFailed(_("No agent here is this client of the identity provider."))
    claims = _verified(token, claimed, resource)
    known = _agent_of(book, claimed, claims["sub"])
    return _bearer(known, claimed, claims, resource)


def _read(token: str) -> _Claimed:
    if len(token) > TOKEN_MAX:
        raise ProviderFailed(_("The token is too long."))
    try:
        header = jwt.get_unverified_header(token)
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ProviderFailed(_UNREADABLE) from error
    issuer = claims.get("iss")
    provider = next((one for one in agent_providers() if one.issuer == issuer), None)
    if provider is None:
        raise ProviderFailed(_("The token is from an issuer whose tokens are not taken here."))
    if not isinstance(kind := header.get("typ", ""), str) or kind.lower() not in TYPES:
        raise ProviderFailed(_("The token is of another kind than an access token."))
    return _Claimed(header, provider, _client(claims))


def _client(claims: dict[str, Any]) -> str:
    """RFC 9068 has `client_id`, OpenID Connect `azp`, Entra ID `appid`: where there are several,
    they agree."""
    told = [claims[name] for name in ("client_id", "azp", "appid") if name in claims]
    if not told or not is_name(told[0]) or any(one != told[0] for one in told):
        raise ProviderFailed(_("The token names no client."))
    return str(told[0])


def _verified(token: str, claimed: _Claimed, resource: str) -> dict[str, Any]:
    key = signing_key(claimed.provider, claimed.header, asked_by=AGENT)
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[claimed.header["alg"]],
            issuer=claimed.provider.issuer,
            leeway=SKEW_S,
            options={"require": ["iss", "sub", "aud", "exp"], "verify_aud": False},
        )
        check_texts(claims)
        _check(claims, claimed.provider, resource)
    except jwt.PyJWTError as error:
        raise ProviderFailed(why_refused(error)) from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ProviderFailed(_UNREADABLE) from error
    return claims


def _check(claims: dict[str, Any], provider: IdentityProvider, resource: str) -> None:
    # One for several resources could be brought here by each of them.
    named = claims["aud"]
    aud = named[0] if isinstance(named, list) and len(named) == 1 else named
    if not isinstance(aud, str) or canonical_resource(aud) != resource:
        raise ProviderFailed(_("The token is for another address."))
    if not is_name(claims["sub"]):
        raise ProviderFailed(_("The token names nobody."))
    _jkt(claims)
    if not all(_is_time(claims[name]) for name in ("exp", "nbf", "iat") if name in claims):
        raise ProviderFailed(_UNREADABLE)
    left = claims["exp"] - time.time()
    # The leeway of a minute is for the start alone.
    if left <= 0:
        raise ProviderFailed(_("The token has expired."))
    if left > LIFETIME_MAX_S:
        raise ProviderFailed(_("The token is valid for longer than a day."))
    if provider.agent_scope and provider.agent_scope not in _scopes(claims):
        raise ScopeMissing(provider.agent_scope)
    # A provider that names groups elsewhere, as Entra does of people in many, names none here.
    if provider.agent_groups and groups_told(provider, claims).isdisjoint(provider.agent_groups):
        raise ProviderFailed(_("The token names none of the groups that agents need."))


def _jkt(claims: dict[str, Any]) -> str:
    """The thumbprint of the key that the token is bound to; empty where it is bound to none. The
    key is proved with each request (gateway/http/proofs.py)."""
    if "cnf" not in claims:
        return ""
    match claims["cnf"]:
        case {"jkt": str(jkt), **more} if is_thumbprint(jkt) and not more:
            return jkt
    raise ProviderFailed(_("The token is bound to something that is not checked here."))


def _is_time(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < TIME_MAX


def _scopes(claims: dict[str, Any]) -> set[str]:
    """Entra ID and Okta have `scp`, Okta as a list."""
    told: set[str] = set()
    for name in ("scope", "scp"):
        value = claims.get(name)
        words = value.split() if isinstance(value, str) else value
        told |= {one for one in words if isinstance(one, str)} if isinstance(words, list) else set()
    return told


def _bearer(known: Bearer, claimed: _Claimed, claims: dict[str, Any], resource: str) -> Bearer:
    token_id = claims.get("jti")
    signed_in = SignedIn(
        issuer=claimed.provider.issuer,
        client_id=claimed.client_id,
        subject=claims["sub"],
        token_id=token_id[:255] if isinstance(token_id, str) else "",
        resource=resource,
        groups=token_groups(claimed.provider, claims),
        is_of_provider=True,
    )
    ends = float(claims["exp"])
    return replace(known, grant=known, signed_in=signed_in, expires_at=ends, jkt=_jkt(claims))


def _agent_of(book: TokenBook, claimed: _Claimed, subject: str) -> Bearer:
    """Calls, tasks and keys are an agent's here: whoever else used it would see and withdraw what
    the others asked for. Users who share a client therefore have an agent each."""
    issuer = claimed.provider.issuer
    known = book.agent_of(issuer, claimed.client_id, subject)
    if known is not None:
        return known
    found = Identity.objects.filter(issuer=issuer, subject=subject, disconnected_at=None)
    if found.exists():
        raise ProviderFailed(
            _("The token is for a user who owns no agent of this client, or several.")
        )
    if subject == claimed.client_id:
        raise ProviderFailed(_("The token is for the client itself, which is no single agent."))
    raise ProviderFailed(_("The token's subject is no account that an agent's owner connected."))
