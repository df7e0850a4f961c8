"""Addresses to which a client is sent back. Source: RFC 8252, 7; RFC 9700, 2.1."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

LOOPBACK = ("127.0.0.1", "::1", "localhost")
LENGTH_MAX = 2000
# In a header or on a page they would be read otherwise than they are compared.
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]+", re.ASCII)
# Nothing that urlsplit, browsers and Content-Security-Policy read differently.
_HOST = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]*)?", re.ASCII | re.IGNORECASE)
# Of native MCP clients that are registered under a plain word; settings.CLIENT_SCHEMES has more.
# Sources: cursor, modelcontextprotocol/python-sdk#897; vscode, code.visualstudio.com/api (URI
# handlers); windsurf, zed and claude, trypostit/trypost#336 and mindset-ai/memex-ai#146.
_CLIENTS = frozenset(("claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"))
# A domain's of the app's maker, reversed (RFC 8252, 7.1).
_DOMAIN = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+", re.ASCII)
# Of Windows and its programs ("ms-msdt", "microsoft.windows.camera"), of macOS, and what passes for
# http.
_OF_SYSTEMS = re.compile(r"ms-.*|microsoft.*|x-apple.*|com\.apple\..*|itms.*|http.*", re.ASCII)


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
    return _is_app(parts.scheme)


def is_plain(uri: str) -> bool:
    """Whether its characters are those of an address, and its host no other than it reads like."""
    parts = _split(uri) if _PLAIN.fullmatch(uri) else None
    return parts is not None and _HOST.fullmatch(parts.netloc) is not None


def _is_app(scheme: str) -> bool:
    # All others: a browser would run some, show something of its own, or write to somebody; or the
    # system opens one of its programs with what the address says.
    if scheme in _CLIENTS or scheme in settings.CLIENT_SCHEMES:
        return True
    return _DOMAIN.fullmatch(scheme) is not None and not _OF_SYSTEMS.fullmatch(scheme)


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


def is_of_host(uri: str) -> bool:
    """Whether it leads to a host elsewhere, and to no program on the user's computer."""
    return uri.startswith("https://") and bool(place_of(uri))


def source_of(uri: str) -> str:
    """Its source in Content-Security-Policy, for `form-action`."""
    parts = urlsplit(uri)
    if parts.scheme in ("http", "https") and not parts.netloc.startswith("["):
        return f"{parts.scheme}://{parts.netloc}"
    # A policy knows no addresses of IPv6, and a browser would stay on the page.
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
