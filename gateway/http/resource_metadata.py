"""Where an agent's client learns who gives it tokens for an address here.

Source: RFC 9728; MCP 2026-07-28, basic/authorization. The document of an address is the same
whether there is a toolset or not: who may ask for it is nobody in particular.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.conf import settings

from accounts.oidc.access_tokens import agent_providers
from gateway.protocol.errors import CLOSE, Header, RpcError

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_ADDRESS = re.compile(r"/mcp/([\w-]{1,64})(?:/([\w-]{1,64}))?", re.ASCII)
# Pages of other origins may read it: it is nobody's secret, and Inspector is such a page.
HEADERS: tuple[Header, ...] = ((b"access-control-allow-origin", b"*"),)


def resource_of(toolset: str, server: str = "") -> str:
    """The address as tokens name it (RFC 8707): as clients reach it, without a slash at its end."""
    return f"{settings.AGENT_URL}/mcp/{toolset}" + (f"/{server}" if server else "")


def document(path: str) -> bytes:
    """The document at this path. Raises RpcError where nobody gives tokens for the address.

    There is none without an address behind it: each toolset is a resource of its own, and the
    host as a whole is none.
    """
    prefix = urlsplit(settings.AGENT_URL).path
    found = _ADDRESS.fullmatch(path.removeprefix(WELL_KNOWN).removeprefix(prefix))
    servers = authorization_servers()
    if found is None or not servers:
        raise RpcError(404, "There is no metadata at this address.", headers=(CLOSE, *HEADERS))
    said: dict[str, Any] = {
        "resource": resource_of(found[1], found[2] or ""),
        "authorization_servers": servers,
        "bearer_methods_supported": ["header"],
        "resource_name": f"Countersign: {found[1]}",
    }
    if scopes := scopes_wanted():
        said["scopes_supported"] = scopes
    return orjson.dumps(said)


def authorization_servers() -> list[str]:
    return [one.issuer for one in agent_providers()]


def scopes_wanted() -> list[str]:
    return sorted({one.agent_scope for one in agent_providers() if one.agent_scope})


def challenge(path: str, *, error: str = "", scope: str = "") -> Header:
    """The header that answers an absent or refused token at this address (RFC 6750, 3)."""
    if _ADDRESS.fullmatch(path) is None or not authorization_servers():
        return b"www-authenticate", b"Bearer"
    url = urlsplit(settings.AGENT_URL)
    place = f"{url.scheme}://{url.netloc}{WELL_KNOWN}{url.path}{path}"
    wanted = scope or " ".join(scopes_wanted())
    said = {"error": error, "resource_metadata": place, "scope": wanted}
    text = ", ".join(f'{name}="{value}"' for name, value in said.items() if value)
    return b"www-authenticate", f"Bearer {text}".encode("latin-1", "replace")
