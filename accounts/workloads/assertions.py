"""Assertions of programs, checked: signed by their own key, or tokens of an issuer.

Source: RFC 7523, 3; draft-ietf-oauth-rfc7523bis (the audience is the issuer's name, and nothing
besides); SPIFFE JWT-SVID.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

import jwt
from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.models import UsedAssertion, WorkloadIdentity
from accounts.oidc.metadata import AGENT, key_among, signing_key
from accounts.oidc.signed_tokens import SKEW_S, check_texts, is_name, why_refused
from accounts.oidc.workload_issuers import SPIFFE, WorkloadIssuer
from core.english import gettext as _
from core.errors import CountersignError

TOKEN_MAX = 16 * 1024
# So far ahead may be the end of an assertion: one that a program signs for one use, and a token
# that its issuer renews.
OWN_MAX_S, ISSUED_MAX_S = 300, 24 * 3600
# Access tokens, logout tokens, ID-JAGs and DPoP proofs are signed by the same keys.
TYPES = ("", "jwt", "jose", "client-authentication+jwt")
# The key for an assertion with this header; raises ProviderFailed.
KeyOf = Callable[[dict[str, Any]], jwt.PyJWK]
_UNREADABLE = _("The assertion cannot be read.")


class AssertionRefused(CountersignError):
    """The assertion proves nothing; says why. English, for the record."""


def client_of(assertion: str) -> str:
    """Which client a program's own assertion says it is of; empty where it says none."""
    try:
        subject = jwt.decode(assertion, options={"verify_signature": False}).get("sub")
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
        return ""
    return subject if isinstance(subject, str) and is_name(subject) else ""


def check(workload: WorkloadIdentity, assertion: str) -> dict[str, Any]:
    """The claims. Raises AssertionRefused, ProviderAway where the issuer cannot be asked."""
    is_own = workload.kind == WorkloadIdentity.Kind.KEY
    max_s = OWN_MAX_S if is_own else ISSUED_MAX_S
    claims = read(assertion, lambda header: _key(workload, header), max_s=max_s)
    if is_own:
        # One SDK writes every address with a slash at its end.
        ours = (settings.PUBLIC_URL, f"{settings.PUBLIC_URL}/")
        check_own(workload.token.client_id, claims, audiences=ours)
    else:
        _check_issued(workload, claims)
    return claims


def read(
    assertion: str, key_of: KeyOf, *, max_s: int, types: Collection[str] = TYPES
) -> dict[str, Any]:
    """The claims, signed and in time; `max_s`: so far ahead may be its end. Raises
    AssertionRefused, and what `key_of` raises."""
    if len(assertion) > TOKEN_MAX:
        raise AssertionRefused(_("The assertion is too long."))
    claims = _verified(assertion, key_of, types)
    _check_times(claims, max_s)
    return claims


def check_own(client_id: str, claims: dict[str, Any], *, audiences: Collection[str]) -> None:
    """Whether who signed it is the client, for us, once. Raises AssertionRefused."""
    if claims.get("iss") != client_id or claims["sub"] != client_id:
        raise AssertionRefused(_("The assertion is of another client."))
    if claims["aud"] not in (*audiences, *([one] for one in audiences)):
        raise AssertionRefused(_("The assertion is for another authorization server."))
    if not is_name(claims.get("jti")):
        raise AssertionRefused(_("The assertion lacks “jti”, by which it counts once."))


@transaction.atomic
def use_up(client_id: str, claims: dict[str, Any]) -> None:
    """Raises AssertionRefused for an assertion that was shown before."""
    digest = hashlib.sha256(f"{client_id}\n{claims['jti']}".encode()).hexdigest()
    until = datetime.fromtimestamp(claims["exp"] + 2 * SKEW_S, UTC)
    try:
        with transaction.atomic():
            UsedAssertion.objects.create(digest=digest, expires_at=until)
    except IntegrityError as error:
        raise AssertionRefused(_("The assertion was used before.")) from error


def _verified(assertion: str, key_of: KeyOf, types: Collection[str]) -> dict[str, Any]:
    try:
        header = jwt.get_unverified_header(assertion)
        if not isinstance(kind := header.get("typ", ""), str) or kind.lower() not in types:
            raise AssertionRefused(_("The assertion is a token of another kind."))
        claims: dict[str, Any] = jwt.decode(
            assertion,
            key_of(header),
            algorithms=[header["alg"]],
            leeway=SKEW_S,
            options={"require": ["sub", "aud", "exp"], "verify_aud": False, "verify_iss": False},
        )
        check_texts(claims)
    except jwt.PyJWTError as error:
        raise AssertionRefused(why_refused(error)) from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise AssertionRefused(_UNREADABLE) from error
    return claims


def _key(workload: WorkloadIdentity, header: dict[str, Any]) -> jwt.PyJWK:
    """Raises ProviderFailed."""
    if workload.keys:
        return key_among(workload.keys, header)
    issuer = WorkloadIssuer(workload.token.issuer, workload.keys_url)
    return signing_key(issuer, header, asked_by=AGENT)


def _check_times(claims: dict[str, Any], max_s: int) -> None:
    for name in ("exp", "nbf", "iat"):
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**12:
            raise AssertionRefused(_UNREADABLE)
    left = claims["exp"] - time.time()
    # The leeway of a minute is for the start alone.
    if left <= 0:
        raise AssertionRefused(_("The assertion has expired."))
    if left > max_s + SKEW_S:
        raise AssertionRefused(_("The assertion is valid for too long: %d s at most.") % max_s)


def _check_issued(workload: WorkloadIdentity, claims: dict[str, Any]) -> None:
    issuer, subject = workload.token.issuer, claims["sub"]
    if issuer.startswith(SPIFFE):
        # A JWT-SVID has its trust domain in the subject; “iss” means nothing there.
        if not isinstance(subject, str) or not subject.startswith(f"{issuer}/"):
            raise AssertionRefused(_("The assertion is from another trust domain."))
    elif claims.get("iss") != issuer:
        raise AssertionRefused(_("The assertion is from another issuer."))
    if claims["aud"] not in (workload.audience, [workload.audience]):
        raise AssertionRefused(_("The assertion is for another audience."))
    if not is_name(subject) or workload.subject not in ("", subject):
        raise AssertionRefused(_("The assertion is for another workload."))
    for name, wanted in workload.claims.items():
        if claims.get(name) != wanted:
            raise AssertionRefused(_("The assertion's “%s” is another one.") % name)
