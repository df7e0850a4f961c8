"""Checks on a request before a byte of its body is read."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from hashlib import sha256
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from accounts.agent_sign_in import access_tokens
from accounts.tokens import Bearer, TokenBook, well_formed
from gateway.http.proofs import SCHEME, check_scheme
from gateway.protocol.errors import CLOSE, RpcError, unauthorized
from gateway.protocol.headers import Headers, accepts_both, accepts_events, is_json

_SIGNED = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
MAX_BODY = 1024 * 1024
# Signed tokens are renewed all the time, without a change of configuration.
KNOWN_MAX = 10_000
# What somebody may make us look at who shows nothing that looks like a token.
MAX_BODY_STRANGER = 64 * 1024


def check_origin(headers: Headers, *, read_only: bool = False) -> None:
    """Against DNS rebinding: programs send no Origin, and browsers cannot forge one. What is public
    any page may read."""
    host = headers.get(b"host")
    if b"host" in headers.repeated or not is_ours(host):
        raise RpcError(421, "This host name is not served here; see COUNTERSIGN_HOSTS.")
    origin = headers.text(b"origin")
    if not read_only and origin is not None and not _may_call(origin, host):
        raise RpcError(403, "Pages of this origin may not call; see COUNTERSIGN_AGENT_ORIGINS.")


@lru_cache(maxsize=256)
def is_ours(host: bytes) -> bool:
    domain, _port = split_domain_port(host.decode("latin-1"))
    return bool(domain) and validate_host(domain, _own_hosts())


def _own_hosts() -> list[str]:
    urls = (settings.AGENT_URL, settings.PUBLIC_URL)
    return [*settings.ALLOWED_HOSTS, *(urlsplit(url).hostname or "" for url in urls)]


def _may_call(origin: str, host: bytes) -> bool:
    scheme, _, place = origin.partition("://")
    # The page came from here, under a name that is ours.
    same = scheme in ("http", "https") and place.lower() == host.decode("latin-1").lower()
    return same or origin in settings.AGENT_ORIGINS


def check_size(headers: Headers) -> None:
    declared = headers.get(b"content-length") or b"0"
    if not declared.isdigit():
        raise RpcError(400, "Content-Length must be one number.", headers=(CLOSE,))
    size = int(declared)
    if size > MAX_BODY:
        raise too_large(MAX_BODY)
    if size > MAX_BODY_STRANGER and not shows_token(headers):
        raise too_large(MAX_BODY_STRANGER)


def shows_token(headers: Headers) -> bool:
    """Something that looks like a token, valid or not."""
    token = token_of(headers)
    return well_formed(token) or looks_signed(token) or access_tokens.has_form(token)


def looks_signed(token: str) -> bool:
    """Whether this has the form of a signed token (RFC 7515, 7.1), as access tokens do."""
    return _SIGNED.fullmatch(token) is not None


def too_large(limit: int) -> RpcError:
    return RpcError(413, f"The body may be {limit} bytes long at most.", headers=(CLOSE,))


def check_form(headers: Headers) -> None:
    """Checks Content-Encoding, Content-Type and Accept."""
    if headers.get(b"content-encoding").lower() not in (b"", b"identity"):
        raise RpcError(415, "Send the body without Content-Encoding.", headers=(CLOSE,))
    if not is_json(headers.get(b"content-type")):
        raise RpcError(415, "Content-Type must be application/json, in UTF-8.", headers=(CLOSE,))
    if not accepts_both(headers.get(b"accept")):
        raise RpcError(
            406, "Accept must list both application/json and text/event-stream.", headers=(CLOSE,)
        )


def check_ear(headers: Headers) -> None:
    """Checks a GET, which only receives events."""
    if not accepts_events(headers.get(b"accept")):
        raise RpcError(406, "Accept must list text/event-stream.", headers=(CLOSE,))


class TokenCache:
    """Knows who showed a valid token before, until the configuration changes."""

    def __init__(self) -> None:
        self._tokens: TokenBook | None = None
        self._known: dict[bytes, Bearer] = {}

    def bearer(self, headers: Headers, tokens: TokenBook) -> Bearer:
        """Raises where there is none."""
        if tokens is not self._tokens:
            self._tokens, self._known = tokens, {}
        # Not the token itself: nobody shall find one in our memory who looks for it.
        digest = sha256(headers.get(b"authorization")).digest()
        bearer = self._known.get(digest)
        if bearer is None or bearer.expires_at <= time.time():
            bearer = _looked_up(headers, tokens)
            self._keep(digest, bearer)
        return bearer

    def learn(self, headers: Headers, tokens: TokenBook, bearer: Bearer) -> None:
        """Keeps what a signed token was found to be worth, under the configuration that it was
        checked by."""
        if tokens is self._tokens:
            self._keep(sha256(headers.get(b"authorization")).digest(), bearer)

    def _keep(self, digest: bytes, bearer: Bearer) -> None:
        if len(self._known) >= KNOWN_MAX:
            self._known = {}
        self._known[digest] = bearer


def _looked_up(headers: Headers, tokens: TokenBook) -> Bearer:
    bearer = tokens.bearer(token_of(headers))
    if bearer is None:
        raise unauthorized()
    check_scheme(headers, bearer)
    return bearer


def token_of(headers: Headers) -> str:
    scheme, _, token = headers.get(b"authorization").partition(b" ")
    if scheme.lower() not in (b"bearer", SCHEME):
        return ""
    return token.strip().decode("latin-1")
