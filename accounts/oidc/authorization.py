"""The way to a provider and back: authorization code with PKCE.

Source: OpenID Connect Core 1.0, 3.1; RFC 7636; RFC 9207. What was begun is kept in the browser's
session until the provider answers, under its `state`, and is good for one answer.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from yarl import URL

from accounts.oidc.metadata import ProviderFailed, ProviderMetadata, metadata, read_json
from accounts.oidc.providers import IdentityProvider
from accounts.oidc.signed_tokens import check_id_token, check_texts
from core.database_pool import release_connection
from core.english import gettext as _
from core.errors import CountersignError
from core.guarded_http import PlainReply, RequestFailed, fetch
from core.http import is_repeated

PENDING = "at_providers"
VALID_S = 600
# In so many tabs of one browser at once; those before are forgotten.
AT_ONCE = 5
# The parameters of an answer to a browser.
ANSWER = ("code", "state", "iss", "error")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class NotBegun(CountersignError):
    """The answer belongs to nothing that this browser began: expired, used, or somebody else's."""


@dataclass(frozen=True, slots=True)
class PendingAuthorization:
    """A sign-in on its way, kept in the session under its state."""

    provider: str
    issuer: str
    nonce: str
    verifier: str
    begun: int
    next_page: str
    # Of an invitation: the end of its link.
    invitation: str = ""
    # Of somebody who is signed in and connects this account to theirs.
    connects: int | None = None
    # Of step-up: what is confirmed. The nonce is its SHA-256, which the provider's token repeats.
    statement: str = ""


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """A person at the provider: what it says of them, by tokens that were checked."""

    pending: PendingAuthorization
    claims: dict[str, Any]
    id_token: str


def begin(
    request: HttpRequest,
    provider: IdentityProvider,
    *,
    next_page: str,
    invitation: str = "",
    connects: int | None = None,
    statement: str = "",
) -> str:
    """The URL at the provider to which the browser goes. Raises ProviderFailed."""
    endpoint = metadata(provider).endpoint("authorization_endpoint")
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    pending = PendingAuthorization(
        provider=provider.slug,
        issuer=provider.issuer,
        nonce=digest(statement) if statement else secrets.token_urlsafe(32),
        verifier=verifier,
        begun=int(time.time()),
        next_page=next_page,
        invitation=invitation,
        connects=connects,
        statement=statement,
    )
    _keep(request, state, pending)
    return str(URL(endpoint).update_query(_query(provider, pending, state)))


def finish(
    request: HttpRequest, provider: IdentityProvider, pending: PendingAuthorization
) -> ProviderAnswer:
    """Reads the provider's answer to what `take` returned. Raises ProviderFailed."""
    _check_provider(provider, pending)
    _check_issuer(request, provider)
    if error := request.GET.get("error"):
        raise ProviderFailed(_refusal(error))
    code = request.GET.get("code", "")
    if not code:
        raise ProviderFailed(_("The provider's answer is not what was asked for."))
    return _redeem(provider, pending, code)


def _query(provider: IdentityProvider, pending: PendingAuthorization, state: str) -> dict[str, str]:
    challenge = hashlib.sha256(pending.verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": provider.callback_url,
        "scope": " ".join(dict.fromkeys(("openid", *provider.scopes))),
        "state": state,
        "nonce": pending.nonce,
        "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    if pending.statement:
        strength = _strength(provider, provider.step_up_acr_values)
        return query | {"scope": "openid", "prompt": "login", "max_age": "0"} | strength
    if provider.max_age_s is not None:
        query["max_age"] = str(provider.max_age_s)
    return query | _strength(provider, provider.acr_values)


def _strength(provider: IdentityProvider, values: Collection[str]) -> dict[str, str]:
    """Source: OpenID Connect Core 1.0, 3.1.2.1 and 5.5."""
    if not values:
        return {}
    if provider.acr_claim == "acr":
        return {"acr_values": " ".join(values)}
    # Of several the provider may choose; Entra ID knows “value” alone.
    wanted = {"value": next(iter(values))} if len(values) == 1 else {"values": list(values)}
    claims = {"id_token": {provider.acr_claim: {"essential": True, **wanted}}}
    return {"claims": json.dumps(claims)}


def digest(statement: str) -> str:
    return hashlib.sha256(statement.encode()).hexdigest()


def _keep(request: HttpRequest, state: str, pending: PendingAuthorization) -> None:
    kept = dict(request.session.get(PENDING, {}))
    kept[state] = asdict(pending)
    request.session[PENDING] = dict(list(kept.items())[-AT_ONCE:])


def take(request: HttpRequest) -> PendingAuthorization:
    """Takes out what the answer belongs to: it is good for one answer. Raises NotBegun."""
    if is_repeated(request.GET, ANSWER):
        raise NotBegun(_("The answer has a parameter twice. Begin again."))
    kept = dict(request.session.get(PENDING, {}))
    found = kept.pop(request.GET.get("state", ""), None)
    if found is None:
        raise NotBegun(_("This sign-in expired, or was used before. Begin again."))
    request.session[PENDING] = kept
    pending = PendingAuthorization(**found)
    if not 0 <= time.time() - pending.begun <= VALID_S:
        raise NotBegun(_("This sign-in expired, or was used before. Begin again."))
    return pending


def _check_provider(provider: IdentityProvider, pending: PendingAuthorization) -> None:
    if (pending.provider, pending.issuer) != (provider.slug, provider.issuer):
        raise ProviderFailed(_("Another provider answered than the one that was asked."))


def _check_issuer(request: HttpRequest, provider: IdentityProvider) -> None:
    """Source: RFC 9207, 2.4."""
    said = request.GET.get("iss")
    is_promised = metadata(provider).document.get("authorization_response_iss_parameter_supported")
    if said is None and is_promised is True:
        raise ProviderFailed(_("The answer does not name its provider."))
    if said is not None and said != provider.issuer:
        raise ProviderFailed(_("Another provider answered than the one that was asked."))


def _refusal(error: str) -> str:
    if error == "access_denied":
        return _("The provider did not let you in.")
    if error in ("login_required", "interaction_required", "consent_required"):
        return _("The provider wants you to sign in there first. Begin again.")
    return _("The provider reported an error.")


def _redeem(provider: IdentityProvider, pending: PendingAuthorization, code: str) -> ProviderAnswer:
    known = metadata(provider)
    tokens = _tokens(provider, known, pending, code)
    id_token = tokens.get("id_token")
    if not isinstance(id_token, str):
        raise ProviderFailed(_("The provider gave no ID token."))
    if pending.statement:
        return ProviderAnswer(pending, _check_step_up(provider, pending, id_token), id_token)
    claims = check_id_token(
        provider,
        id_token,
        nonce=pending.nonce,
        max_age_s=provider.max_age_s,
        acr_values=provider.acr_values,
    )
    return ProviderAnswer(pending, _with_userinfo(known, tokens, claims), id_token)


def _check_step_up(
    provider: IdentityProvider, pending: PendingAuthorization, id_token: str
) -> dict[str, Any]:
    """The person has to have signed in there since this began, as strongly as is wanted now."""
    if not provider.step_up_acr_values:
        raise ProviderFailed(_("Nothing is confirmed at this provider."))
    return check_id_token(
        provider,
        id_token,
        nonce=pending.nonce,
        max_age_s=int(time.time()) - pending.begun,
        acr_values=provider.step_up_acr_values,
    )


def _tokens(
    provider: IdentityProvider, known: ProviderMetadata, pending: PendingAuthorization, code: str
) -> dict[str, Any]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": provider.callback_url,
        "code_verifier": pending.verifier,
    }
    headers = {**FORM, **_authentication(provider, form)}
    reply = _ask("POST", known.endpoint("token_endpoint"), headers, urlencode(form).encode())
    if reply.status != 200:
        raise ProviderFailed(_("The provider did not take the code: status %d.") % reply.status)
    return read_json(reply.body)


def _authentication(provider: IdentityProvider, form: dict[str, str]) -> dict[str, str]:
    """The header with our secret, or the fields of the form. Source: RFC 6749, 2.3.1."""
    secret = provider.client_secret
    method = provider.token_endpoint_auth_method or ("client_secret_basic" if secret else "none")
    if method == "client_secret_basic":
        pair = f"{quote(provider.client_id, safe='')}:{quote(secret, safe='')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    form["client_id"] = provider.client_id
    if method == "client_secret_post":
        form["client_secret"] = secret
    return {}


def _with_userinfo(
    known: ProviderMetadata, tokens: dict[str, Any], claims: dict[str, Any]
) -> dict[str, Any]:
    """The ID token's claims, and those that the provider tells only there. The token's win."""
    endpoint, access = known.endpoint("userinfo_endpoint"), tokens.get("access_token")
    if not endpoint or not isinstance(access, str):
        return claims
    reply = _ask("GET", endpoint, {"Authorization": f"Bearer {access}"})
    if reply.status != 200:
        raise ProviderFailed(_("The provider answered with status %d.") % reply.status)
    told = read_json(reply.body)
    check_texts(told)
    # Source: OpenID Connect Core 1.0, 5.3.2: without this, it could be of somebody else.
    if told.get("sub") != claims["sub"]:
        raise ProviderFailed(_("The provider's answer is for a different account."))
    return {**told, **claims}


def _ask(method: str, url: str, headers: dict[str, str], body: bytes = b"") -> PlainReply:
    release_connection()
    try:
        return fetch(method, url, headers, body)
    except RequestFailed as error:
        raise ProviderFailed(str(error)) from error
