"""Tokens of an authorization server: for a code, renewed, and revoked.

Sources: OAuth 2.1; RFC 8707 (`resource`), RFC 7009.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from django.utils import timezone

from core.english import gettext as _
from core.guarded_http import PlainReply
from registry.credentials import vault
from registry.credentials.authorization_server import SignInFailed, ask, read_object, scopes_in
from registry.models import ServerClient

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_TOKEN_MAX = 16_000
# Said of the code or refresh token itself, by some with HTTP 200. Any other error is of this
# installation as a client, or of the moment, and ends nobody's credential.
_NO_GOOD = ("invalid_grant", "invalid_token", "bad_refresh_token")
# After this it is asked anew, whatever the server says.
_LASTS_MAX = timedelta(days=365)


class TokenRejected(SignInFailed):
    """The authorization server takes the code or refresh token no more: sign in again."""


@dataclass(frozen=True, slots=True, repr=False)
class ServerTokens:
    access: str
    refresh: str
    expires_at: datetime | None
    # None: as asked for.
    scopes: list[str] | None


def redeem(client: ServerClient, *, code: str, verifier: str, redirect_uri: str) -> ServerTokens:
    """Raises SignInFailed."""
    asked = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
    return _tokens(client, asked | {"redirect_uri": redirect_uri})


def refresh(client: ServerClient, refresh_token: str) -> ServerTokens:
    """Raises TokenRejected where it is no good any more, SignInFailed where nobody knows."""
    return _tokens(client, {"grant_type": "refresh_token", "refresh_token": refresh_token})


def revoke(client: ServerClient, token: str, hint: str) -> bool:
    """False where the authorization server offers no revocation. Raises SignInFailed."""
    url = client.metadata.get("revocation_endpoint")
    if not url:
        return False
    reply = _post(client, url, {"token": token, "token_type_hint": hint})
    if reply.status != 200:
        raise SignInFailed(_("The authorization server answered with HTTP %d.") % reply.status)
    return True


def _tokens(client: ServerClient, asked: dict[str, str]) -> ServerTokens:
    asked = asked | {"resource": client.resource}
    reply = _post(client, client.metadata["token_endpoint"], asked)
    if _error_of(reply) in _NO_GOOD:
        raise TokenRejected(_("The authorization server wants a new sign-in."))
    if reply.status != 200:
        raise SignInFailed(_("The authorization server answered with HTTP %d.") % reply.status)
    return _read(read_object(reply))


def _error_of(reply: PlainReply) -> Any:
    try:
        return read_object(reply).get("error")
    except SignInFailed:
        return None


def _read(said: dict[str, Any]) -> ServerTokens:
    access, again = said.get("access_token"), said.get("refresh_token", "")
    if not (_is_token(access) and str(said.get("token_type", "")).lower() == "bearer"):
        raise SignInFailed(_("The authorization server gave no bearer token."))
    scope = said.get("scope")
    return ServerTokens(
        access=str(access),
        refresh=again if _is_token(again) else "",
        expires_at=_expiry(said.get("expires_in")),
        scopes=scopes_in(scope) if isinstance(scope, str) else None,
    )


def _is_token(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _TOKEN_MAX and _is_visible(value)


def _is_visible(text: str) -> bool:
    return all("\x21" <= one <= "\x7e" for one in text)


def _expiry(seconds: Any) -> datetime | None:
    # Some say it as text, and both SDKs read that.
    if isinstance(seconds, str) and seconds.isdecimal():
        seconds = int(seconds[:10])
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
        return None
    return timezone.now() + min(timedelta(seconds=min(seconds, 1e9)), _LASTS_MAX)


def _post(client: ServerClient, url: str, asked: dict[str, str]) -> PlainReply:
    secret = vault.client_secret(client)
    headers, form = dict(_FORM), dict(asked)
    methods = client.metadata.get("token_endpoint_auth_methods_supported") or []
    if secret and (not methods or "client_secret_basic" in methods):
        pair = f"{quote(client.client_id, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    else:
        form["client_id"] = client.client_id
        if secret:
            form["client_secret"] = secret
    return ask(client.server.url, "POST", url, headers, urlencode(form).encode())
