"""Where an agent's client learns who gives it tokens for an address here.

Source: RFC 9728; MCP 2026-07-28, basic/authorization. Where identity providers alone give tokens,
the document of an address is the same whether there is a toolset or not: who may ask for it is
nobody in particular. A toolset where users sign in agents names our own server first.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.conf import settings

from accounts import dpop
from accounts.oidc.access_tokens import agent_providers
from gateway.protocol.errors import CLOSE, Header, RpcError

WELL_KNOWN = "/.well-known/oauth-protected-resource"
# Where clients look that know no metadata of resources (MCP 2025-03-26).
ISSUER_KNOWN = "/.well-known/oauth-authorization-server"
_ADDRESS = re.compile(r"/mcp/([\w-]{1,64})(?:/([\w-]{1,64}))?(/?)", re.ASCII)
# Pages of other origins may read it: it is nobody's secret, and Inspector is such a page.
HEADERS: tuple[Header, ...] = ((b"access-control-allow-origin", b"*"),)


def resource_of(toolset: str, server: str = "") -> str:
    """The address as tokens name it (RFC 8707): as clients reach it, without a slash at its end."""
    return f"{settings.AGENT_URL}/mcp/{toolset}" + (f"/{server}" if server else "")


SCOPE = "tools"


def to_issuer() -> tuple[Header, ...]:
    """Leads from there to the metadata of our own server."""
    return (*HEADERS, (b"location", f"{settings.PUBLIC_URL}{ISSUER_KNOWN}".encode()))


def slug_of(path: str) -> str:
    """The toolset that a path of the endpoint or of its document names; empty if it names none."""
    found = _address(path.removeprefix(WELL_KNOWN))
    return found[1] if found else ""


def _address(path: str) -> re.Match[str] | None:
    return _ADDRESS.fullmatch(path.removeprefix(urlsplit(settings.AGENT_URL).path))


def document(path: str, *, is_open: bool) -> bytes:
    """The document at this path; `is_open`: users sign in agents to its toolset. Raises RpcError
    where nobody gives tokens for the address.

    There is none without an address behind it: each toolset is a resource of its own, and the
    host as a whole is none.
    """
    found = _address(path.removeprefix(WELL_KNOWN))
    servers = authorization_servers(is_open=is_open)
    if found is None or not servers:
        raise RpcError(404, "There is no metadata at this address.", headers=(CLOSE, *HEADERS))
    said: dict[str, Any] = {
        # As it was asked for: clients compare it with what their user typed (RFC 9728, 3.3).
        "resource": resource_of(found[1], found[2] or "") + found[3],
        "authorization_servers": servers,
        "bearer_methods_supported": ["header"],
        "dpop_signing_alg_values_supported": list(dpop.ALGORITHMS),
        "resource_name": f"Countersign: {found[1]}",
    }
    if scopes := scopes_wanted(is_open=is_open):
        said["scopes_supported"] = scopes
    return orjson.dumps(said)


def authorization_servers(*, is_open: bool) -> list[str]:
    own = [settings.PUBLIC_URL] if is_open else []
    return own + [one.issuer for one in agent_providers()]


def scopes_wanted(*, is_open: bool) -> list[str]:
    """Those of the server that is named first, which clients ask."""
    if is_open:
        return [SCOPE]
    return sorted({one.agent_scope for one in agent_providers() if one.agent_scope})


def challenge(path: str, *, error: str = "", scope: str = "", is_open: bool = False) -> Header:
    """The header that answers an absent or refused token at this address (RFC 6750, 3)."""
    return _challenge("Bearer", {"error": error, **_place(path, scope, is_open=is_open)})


def proof_challenge(path: str, error: str, description: str, *, is_open: bool) -> Header:
    """The header that answers a token without the proof that it needs (RFC 9449, 7.1)."""
    said = {
        "error": error,
        "error_description": description.replace('"', "'"),
        "algs": " ".join(dpop.ALGORITHMS),
    }
    return _challenge("DPoP", said | _place(path, "", is_open=is_open))


def _place(path: str, scope: str, *, is_open: bool) -> dict[str, str]:
    if _ADDRESS.fullmatch(path) is None or not authorization_servers(is_open=is_open):
        return {}
    url = urlsplit(settings.AGENT_URL)
    place = f"{url.scheme}://{url.netloc}{WELL_KNOWN}{url.path}{path}"
    wanted = scope or " ".join(scopes_wanted(is_open=is_open))
    return {"resource_metadata": place, "scope": wanted}


def _challenge(scheme: str, said: dict[str, str]) -> Header:
    text = ", ".join(f'{name}="{value}"' for name, value in said.items() if value)
    return b"www-authenticate", f"{scheme} {text}".strip().encode("latin-1", "replace")
