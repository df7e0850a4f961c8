"""Relays log lines of servers on the stream of the call.

Sources: MCP 2026-07-28, server/utilities/logging (asked for with each request); earlier revisions'
the same (once for a session).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calls.running.log_book import Place
from core.levels import LEVELS
from gateway.process.log_lines import LogStream
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import invalid_params
from gateway.protocol.revisions import META
from gateway.protocol.sessions import session_key

META_LEVEL = META + "logLevel"


async def set_level(rpc: RpcRequest) -> bytes:
    """logging/setLevel of the revisions that have it. Without a session nobody can say whose."""
    level = _checked(rpc.message.params.get("level"))
    if rpc.client.session:
        await rpc.runtime.levels.set(session_key(rpc.client.session), level)
    return rpc.result(b"{}")


async def wanted(rpc: RpcRequest) -> str:
    """Empty where its agent wants to hear nothing."""
    if rpc.client.modern:
        level = rpc.message.meta.get(META_LEVEL)
        return "" if level is None else _checked(level)
    if not rpc.client.session:
        return ""
    return await rpc.runtime.levels.of(session_key(rpc.client.session))


def relay(rpc: RpcRequest, level: str) -> Callable[[dict[str, Any]], None] | None:
    """Passes on what is important enough, on the stream of the call."""
    if not level:
        return None
    rpc.lines = LogStream(rpc.reply, level)
    return rpc.lines.say


async def go_on(rpc: RpcRequest, place: Place) -> None:
    """The same for a request or stream that goes on with a call, from this line on."""
    level = await wanted(rpc)
    if level:
        rpc.lines = LogStream(rpc.reply, level, place=place)


def _checked(level: object) -> str:
    if isinstance(level, str) and level in LEVELS:
        return level
    raise invalid_params(f"A log level is one of: {', '.join(LEVELS)}.")
