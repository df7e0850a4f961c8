"""Addresses to which a client is sent back. Source: RFC 8252, 7; RFC 9700, 2.1."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

LOOPBACK = ("127.0.0.1", "::1", "localhost")
LENGTH_MAX = 2000
# In a header or on a page they would be read otherwise than they are compared.
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.ASCII)
# Nothing that urlsplit, browsers and Content-Security-Policy read differently.
_HOST = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]*)?", re.ASCII | re.IGNORECASE)
# A browser would run them, show something of its own, or write to somebody.
_NEVER = frozenset(
    (
        *("about", "blob", "chrome", "data", "file", "filesystem", "ftp", "intent"),
        *("javascript", "mailto", "sms", "tel", "view-source", "vbscript", "ws", "wss"),
    )
)


def is_allowed(uri: object) -> bool:
    """Whether a client may name it: https, a program on the user's computer, or an app's scheme."""
    if not isinstance(uri, str) or len(uri) > LENGTH_MAX or not _PLAIN.fullmatch(uri):
        return False
    parts = _split(uri)
    if parts is None or "#" in uri or parts.username is not None or parts.password is not None:
        return False
    if parts.scheme in ("http", "https"):
        is_safe = parts.scheme == "https" or parts.hostname in LOOPBACK
        return is_safe and _HOST.fullmatch(parts.netloc) is not None
    return bool(_SCHEME.fullmatch(parts.scheme)) and parts.scheme not in _NEVER


def is_one_of(uri: str, registered: list[str]) -> bool:
    """Exactly, but for the port of a program on the user's computer (RFC 8252, 7.3)."""
    if not is_allowed(uri):
        return False
    return uri in registered or any(_is_same_but_port(uri, one) for one in registered)


def place_of(uri: str) -> str:
    """Its host for people; the scheme of an app. Empty for the user's own computer."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https"):
        return f"{parts.scheme}://"
    return "" if parts.hostname in LOOPBACK else parts.netloc


def source_of(uri: str) -> str:
    """Its source in Content-Security-Policy, for `form-action`."""
    parts = urlsplit(uri)
    if parts.scheme in ("http", "https"):
        return f"{parts.scheme}://{parts.netloc}"
    return f"{parts.scheme}:"


def _is_same_but_port(uri: str, registered: str) -> bool:
    asked, known = _split(uri), _split(registered)
    if asked is None or known is None or known.scheme != "http" or known.hostname not in LOOPBACK:
        return False
    return _without_port(asked) == _without_port(known)


def _without_port(parts: SplitResult) -> tuple[str | None, ...]:
    return parts.scheme, parts.hostname, parts.path, parts.query


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018 raises where it is none
    except ValueError:
        return None
    return parts if uri.startswith(f"{parts.scheme}:") else None
