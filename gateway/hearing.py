"""What servers log while they run a call, on the call's own stream.

Sources: MCP 2026-07-28, server/utilities/logging (asked for with each request); earlier revisions'
the same (once for a session).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calls.logs import Place
from core.levels import LEVELS
from gateway.exchange import Turn
from gateway.lines import Lines
from gateway.refusals import invalid_params
from gateway.revisions import META
from gateway.sessions import session_key

META_LEVEL = META + "logLevel"


async def set_level(turn: Turn) -> bytes:
    """logging/setLevel of the revisions that have it. Without a session nobody can say whose."""
    level = _checked(turn.message.params.get("level"))
    if turn.client.session:
        await turn.runtime.levels.set(session_key(turn.client.session), level)
    return turn.result(b"{}")


async def wanted(turn: Turn) -> str:
    """Empty where its agent wants to hear nothing."""
    if turn.client.modern:
        level = turn.message.meta.get(META_LEVEL)
        return "" if level is None else _checked(level)
    if not turn.client.session:
        return ""
    return await turn.runtime.levels.of(session_key(turn.client.session))


def relay(turn: Turn, level: str) -> Callable[[dict[str, Any]], None] | None:
    """Passes on what is important enough, on the stream of the call."""
    if not level:
        return None
    turn.lines = Lines(turn.reply, level)
    return turn.lines.say


async def go_on(turn: Turn, place: Place) -> None:
    """The same for a request or stream that goes on with a call, from this line on."""
    level = await wanted(turn)
    if level:
        turn.lines = Lines(turn.reply, level, place=place)


def _checked(level: object) -> str:
    if isinstance(level, str) and level in LEVELS:
        return level
    raise invalid_params(f"A log level is one of: {', '.join(LEVELS)}.")
