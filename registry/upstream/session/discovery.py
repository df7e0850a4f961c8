"""Reads a server's description of itself, and all its lists."""

from collections.abc import Callable
from typing import Any, Protocol

import orjson

from core import header_params
from core.kept_english import gettext as _
from registry.upstream.session import items
from registry.upstream.values import (
    Limits,
    ProtocolError,
    ResultTooLarge,
    RpcErrorReply,
    ServerListing,
)
from registry.upstream.wire import LEGACY, METHOD_NOT_FOUND, MODERN

_PAGES = 200
_MOST = 5000
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"

Items = list[dict[str, Any]]
LeftOut = list[tuple[str, str]]


class DiscoverableServer(Protocol):
    async def introduce(self, limits: Limits) -> tuple[str, dict[str, Any]]: ...

    async def ask(self, method: str, params: bytes, limits: Limits) -> dict[str, Any]: ...


async def discover(server: DiscoverableServer, limits: Limits, *, by_http: bool) -> ServerListing:
    revision, opening = await server.introduce(limits)
    left_out: LeftOut = []
    tools = await _tools(server, opening, limits, left_out)
    if by_http and revision == MODERN:
        tools = _without_invalid(tools, left_out)
    instructions = opening.get("instructions")
    others: dict[str, Any] = {
        kind: await _others(server, opening, kind, limits, left_out) for kind in items.KINDS
    }
    return ServerListing(
        revision=revision,
        server_info=_server_info(opening),
        capabilities=_object(opening.get("capabilities")),
        instructions=instructions if isinstance(instructions, str) else "",
        tools=tools,
        left_out=tuple(left_out),
        named=_named_revisions(opening),
        **others,
    )


async def _tools(
    server: DiscoverableServer, opening: dict[str, Any], limits: Limits, left_out: LeftOut
) -> Items:
    try:
        return await _all_pages(server, limits, left_out)
    except RpcErrorReply as error:
        # A server without tools need not know the method.
        offers_tools = "tools" in _object(opening.get("capabilities"))
        if error.code == METHOD_NOT_FOUND and not offers_tools:
            return []
        raise


async def _all_pages(server: DiscoverableServer, limits: Limits, left_out: LeftOut) -> Items:
    tools: dict[str, dict[str, Any]] = {}

    def collect(page: dict[str, Any]) -> int:
        _collect(page, tools, left_out)
        return len(tools)

    await _turn_pages(server, "tools", limits, collect)
    return list(tools.values())


async def _others(
    server: DiscoverableServer,
    opening: dict[str, Any],
    kind: str,
    limits: Limits,
    left_out: LeftOut,
) -> Items | None:
    """Its resources, templates or prompts. What is wrong with them keeps no tool from agents."""
    if items.CAPABILITY[kind] not in _object(opening.get("capabilities")):
        return []
    found = items.Items(kind, left_out)
    try:
        await _turn_pages(server, items.LISTED[kind], limits, found.collect)
    except RpcErrorReply as error:
        if error.code == METHOD_NOT_FOUND:
            return []
        left_out.append((items.METHOD[kind], str(error)))
        return None
    except (ProtocolError, ResultTooLarge) as error:
        left_out.append((items.METHOD[kind], str(error)))
        return None
    return found.found


async def _turn_pages(
    server: DiscoverableServer,
    listed: str,
    limits: Limits,
    collect: Callable[[dict[str, Any]], int],
) -> None:
    seen: set[str] = set()
    cursor: str | None = None
    for _page in range(_PAGES):
        params = b"" if cursor is None else b'"cursor":' + orjson.dumps(cursor)
        page = await server.ask(f"{listed}/list", params, limits)
        if collect(page) > _MOST:
            raise ResultTooLarge(_MORE_THAN % {"most": _MOST, "kind": _named(listed)})
        cursor = _next_cursor(page, listed, seen)
        if cursor is None:
            return
    raise ResultTooLarge(_MORE_PAGES % {"kind": _named(listed), "most": _PAGES})


_MORE_THAN = _("The server lists more than %(most)d %(kind)s.")
_MORE_PAGES = _("The server lists its %(kind)s on more than %(most)d pages.")


def _named(listed: str) -> str:
    return "resource templates" if listed == "resources/templates" else listed


def _collect(page: dict[str, Any], tools: dict[str, dict[str, Any]], left_out: LeftOut) -> None:
    """Parses the tools one by one, so that a bad one hides no other; of two with one name, the
    first counts."""
    listed = page.get("tools")
    if not isinstance(listed, list):
        raise ProtocolError(_("The server's tools/list has no list of tools."))
    for tool in listed:
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name:
            left_out.append(("tools/list", "One has no name."))
        elif name in tools:
            left_out.append((name, "It is listed twice."))
        elif not isinstance(tool.get("inputSchema"), dict):
            left_out.append((name, "It has no inputSchema."))
        else:
            tools[name] = tool


def _next_cursor(page: dict[str, Any], listed: str, seen: set[str]) -> str | None:
    cursor = page.get("nextCursor")
    if cursor is None:
        return None
    if not isinstance(cursor, str):
        raise ProtocolError(_("The server's nextCursor is not text."))
    if cursor in seen:
        raise ProtocolError(_("The server's pages of %s lead in a circle.") % _named(listed))
    seen.add(cursor)
    return cursor


def _without_invalid(tools: Items, left_out: LeftOut) -> Items:
    """Source: MCP 2026-07-28: a client on HTTP must drop tools with an invalid x-mcp-header."""
    kept = []
    for tool in tools:
        try:
            header_params.declared(tool["inputSchema"])
        except header_params.InvalidAnnotation as error:
            left_out.append((tool["name"], str(error)))
        else:
            kept.append(tool)
    return kept


def _server_info(opening: dict[str, Any]) -> dict[str, Any]:
    return _object(_object(opening.get("_meta")).get(_SERVER_INFO) or opening.get("serverInfo"))


def _named_revisions(opening: dict[str, Any]) -> tuple[str, ...]:
    named = opening.get("supportedVersions")
    known = (MODERN, *LEGACY)
    return tuple(one for one in known if one in named) if isinstance(named, list) else ()


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
