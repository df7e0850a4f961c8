"""ID tokens and logout tokens, checked.

Source: OpenID Connect Core 1.0, 3.1.3.7; Back-Channel Logout 1.0, 2.6.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection
from typing import Any

import jwt

from accounts.oidc.metadata import ALGORITHMS, LOGOUT, SIGN_IN, ProviderFailed, signing_key
from accounts.oidc.providers import IdentityProvider
from core.english import gettext as _
from core.text import is_storable

SKEW_S = 60
# Source: OpenID Connect Core 1.0, 2.
NAME_MAX = 255
TOKEN_MAX = 64 * 1024
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
# A logout token is on its way for so long at most, whatever it says of its own end.
LOGOUT_MAX_AGE_S = 300


def check_id_token(
    provider: IdentityProvider,
    token: str,
    *,
    nonce: str,
    max_age_s: int | None = None,
    acr_values: Collection[str] = (),
) -> dict[str, Any]:
    """The claims. Raises ProviderFailed."""
    claims = _verified(provider, token, required=["iss", "sub", "aud", "exp", "iat"])
    if not secrets.compare_digest(_text(claims, "nonce").encode(), nonce.encode()):
        raise ProviderFailed(_("The provider's answer is for another sign-in."))
    if not is_name(claims["sub"]):
        raise ProviderFailed(_("The provider names nobody."))
    if max_age_s is not None:
        _check_age(claims.get("auth_time"), max_age_s)
    if acr_values and _texts(claims.get(provider.acr_claim)).isdisjoint(acr_values):
        raise ProviderFailed(_("The sign-in at the provider was not as strong as is wanted here."))
    return claims


def verify_again(token: str, key: dict[str, Any]) -> dict[str, Any]:
    """The claims of an ID token that was checked and kept with its key, however old it is. Raises
    ProviderFailed."""
    try:
        algorithm = jwt.get_unverified_header(token)["alg"]
        if algorithm not in ALGORITHMS:
            raise ValueError(algorithm)
        claims: dict[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(key, algorithm),
            algorithms=[algorithm],
            options={"verify_exp": False, "verify_aud": False, "verify_iat": False},
        )
    except (jwt.PyJWTError, ValueError, KeyError, TypeError) as error:
        raise ProviderFailed(_("The token's signature is not valid.")) from error
    return claims


def check_logout_token(provider: IdentityProvider, token: str) -> dict[str, Any]:
    """The claims. Raises ProviderFailed."""
    required = ["iss", "aud", "iat", "exp", "jti", "events"]
    claims = _verified(provider, token, required=required, asked_by=LOGOUT)
    events = claims["events"]
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise ProviderFailed(_("The token is about another event."))
    if "nonce" in claims:
        raise ProviderFailed(_("The token is not one for signing out."))
    names = [claims[name] for name in ("sub", "sid") if name in claims]
    if not names or not all(map(is_name, names)) or not _text(claims, "jti"):
        raise ProviderFailed(_("The token names nobody and no session."))
    if time.time() - int(claims["iat"]) > LOGOUT_MAX_AGE_S + SKEW_S:
        raise ProviderFailed(_("The token is too old."))
    return claims


def check_texts(said: object) -> None:
    """Raises ProviderFailed where a text could not be stored."""
    if isinstance(said, dict):
        check_texts([*said, *said.values()])
    elif isinstance(said, list):
        for one in said:
            check_texts(one)
    elif isinstance(said, str) and not is_storable(said):
        raise ProviderFailed(_("The provider's answer has characters that no text may have."))


def _verified(
    provider: IdentityProvider, token: str, *, required: list[str], asked_by: str = SIGN_IN
) -> dict[str, Any]:
    if len(token) > TOKEN_MAX:
        raise ProviderFailed(_("The token is too long."))
    try:
        header = jwt.get_unverified_header(token)
        key = signing_key(provider, header, asked_by=asked_by)
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[header["alg"]],
            audience=provider.client_id,
            issuer=provider.issuer,
            leeway=SKEW_S,
            options={"require": required},
        )
    except jwt.PyJWTError as error:
        raise ProviderFailed(why_refused(error)) from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        # Not looked for by PyJWT: nested too deeply, numbers without end, and the like.
        raise ProviderFailed(_("The token cannot be read.")) from error
    check_texts(claims)
    _check_parties(provider, claims)
    return claims


def _check_parties(provider: IdentityProvider, claims: dict[str, Any]) -> None:
    """PyJWT looks whether we are among the audiences; here, that the token is for us alone."""
    authorized = claims.get("azp")
    is_for_more = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (is_for_more and authorized is None) or authorized not in (None, provider.client_id):
        raise ProviderFailed(_("The token is for another application."))


def _check_age(auth_time: object, max_age_s: int) -> None:
    if not isinstance(auth_time, int) or isinstance(auth_time, bool):
        raise ProviderFailed(_("The provider sent no time of sign-in."))
    if not -SKEW_S <= time.time() - auth_time <= max_age_s + SKEW_S:
        raise ProviderFailed(_("The sign-in at the provider was too long ago."))


def _texts(value: object) -> set[str]:
    """Reads a claim that is one text, or a list of them."""
    several = value if isinstance(value, list) else [value]
    return {one for one in several if isinstance(one, str)}


def _text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAME_MAX and is_storable(value)


def why_refused(error: jwt.PyJWTError) -> str:
    """The reason, as a sentence."""
    match error:
        case jwt.ExpiredSignatureError():
            return _("The token has expired.")
        case jwt.ImmatureSignatureError():
            return _("The token is from the future: the clocks differ by more than a minute.")
        case jwt.InvalidAudienceError():
            return _("The token is for another application.")
        case jwt.InvalidIssuerError():
            return _("The token is from another issuer.")
        case jwt.MissingRequiredClaimError():
            return _("The token lacks “%s”.") % error.claim
        case jwt.InvalidSignatureError():
            return _("The token's signature is not valid.")
    return _("The token cannot be read.")
