"""2026-07-28: every request says for itself what it is, in its body and again in its headers.

Source: MCP 2026-07-28, basic/index and basic/transports/streamable-http.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import orjson

from gateway.protocol.client import Client, named
from gateway.protocol.errors import RpcError, invalid_params, invalid_request
from gateway.protocol.header_cache import HeaderCacheEntry
from gateway.protocol.headers import Headers
from gateway.protocol.messages import RpcMessage
from gateway.protocol.revisions import (
    HEADER_MISMATCH,
    META_CAPABILITIES,
    META_CLIENT,
    META_VERSION,
    MODERN,
    SUPPORTED,
    UNSUPPORTED_VERSION,
)

VERSION, METHOD, NAME = b"mcp-protocol-version", b"mcp-method", b"mcp-name"
_ROUTING = frozenset((VERSION, METHOD, NAME))
_OF_CLIENTS = (META_VERSION, META_CLIENT, META_CAPABILITIES)
# What the header Mcp-Name repeats of a method's params.
_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


def client_of(
    message: RpcMessage, headers: Headers, known: HeaderCacheEntry | None = None
) -> Client:
    """Raises the refusal that the first broken rule calls for."""
    if known is None:
        return _client_of(message, headers)
    # All that the rules look at, beside the head; kept as a digest, since it may be long.
    said = (message.method, _named(message), *map(message.meta.get, _OF_CLIENTS))
    digest = sha256(orjson.dumps(said)).digest()
    if known.client is None or known.client[0] != digest:
        known.client = digest, _client_of(message, headers)
    return known.client[1]


def _named(message: RpcMessage) -> Any:
    key = _NAMED_BY.get(message.method)
    return message.params.get(key) if key else None


def _client_of(message: RpcMessage, headers: Headers) -> Client:
    meta = message.meta
    for key in (META_VERSION, META_CAPABILITIES):
        if key not in meta:
            raise _missing(key, headers)
    _check_headers(message, headers)
    if meta[META_VERSION] != MODERN:
        raise unsupported(meta[META_VERSION])
    capabilities = meta[META_CAPABILITIES]
    if not isinstance(capabilities, dict):
        raise invalid_params(f"params._meta: {META_CAPABILITIES} must be an object.")
    return Client(MODERN, named(meta.get(META_CLIENT)), capabilities)


def hear(message: RpcMessage, headers: Headers) -> None:
    """There is nothing to hear, a client cancels by going away; only the version is checked."""
    if not message.method:
        raise invalid_request("Nothing was asked of you: no answers are expected.")
    version = headers.text(VERSION)
    if version != MODERN:
        raise unsupported(version or "")


def unsupported(requested: str) -> RpcError:
    return RpcError(
        400,
        "This revision of MCP is not spoken here.",
        code=UNSUPPORTED_VERSION,
        data={"supported": list(SUPPORTED), "requested": requested},
    )


def _missing(key: str, headers: Headers) -> RpcError:
    if VERSION in headers.repeated:
        raise mismatch("The header MCP-Protocol-Version came more than once.")
    version = headers.text(VERSION)
    if version not in (None, MODERN):
        return unsupported(version or "")
    return invalid_params(f"params._meta must hold {key}.")


def _check_headers(message: RpcMessage, headers: Headers) -> None:
    repeated = headers.repeated & _ROUTING
    if repeated:
        name = min(repeated).decode()
        raise mismatch(f"The header {name} came more than once.")
    _compare("MCP-Protocol-Version", headers.text(VERSION), message.meta[META_VERSION])
    _compare("Mcp-Method", headers.text(METHOD), message.method)
    key = _NAMED_BY.get(message.method)
    if key == "taskId" and not headers.get(NAME):
        # For balancers to route by. We need none, and a client in wide use leaves it out.
        return
    if key is not None and isinstance(message.params.get(key), str):
        _compare("Mcp-Name", headers.decoded(NAME), message.params[key])


def _compare(name: str, value: str | None, wanted: object) -> None:
    if value is None:
        raise mismatch(f"The header {name} is missing or malformed.")
    if value != wanted:
        raise differs(name)


def differs(name: str) -> RpcError:
    return mismatch(f"The header {name} says something else than the body.")


def mismatch(message: str) -> RpcError:
    return RpcError(400, message, code=HEADER_MISMATCH)
