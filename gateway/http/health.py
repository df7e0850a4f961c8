"""Probes of a process that serves HTTP: /livez (it runs), /readyz and /healthz (it can serve).

They need no token and tell nothing but a word; a process that only waits for a hung database lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from core import outage
from core.errors import RecordUnavailable
from gateway.protocol import reply_stream

LIVE = "/livez"
PATHS = frozenset({LIVE, "/readyz", "/healthz"})
NO_DATABASE = "no database"
NOT_LISTENING = "not listening"
# Less than any common balancer waits (kubelet 1 s unless told otherwise: tell it 3).
WITHIN_S = 2.0


async def respond(
    scope: Any,
    send: Any,
    what_is_wrong: Callable[[], Awaitable[str]],
    is_demo: Callable[[], bool] = lambda: False,
) -> None:
    """`what_is_wrong` says why this process cannot serve: empty if it can; `is_demo`, asked only
    then, whether it serves an invented record."""
    if scope["method"] not in ("GET", "HEAD"):
        await reply_stream.respond(send, 405, b"", ((b"allow", b"GET, HEAD"),))
        return
    wrong = "" if scope["path"] == LIVE else await _within(what_is_wrong)
    mark = ',"demo":true' if scope["path"] != LIVE and not wrong and is_demo() else ""
    body = f'{{"status":"{wrong or "ok"}"{mark}}}'.encode()
    await reply_stream.respond(send, 503 if wrong else 200, body)


async def _within(what_is_wrong: Callable[[], Awaitable[str]]) -> str:
    try:
        async with asyncio.timeout(WITHIN_S):
            return await what_is_wrong()
    except (TimeoutError, RecordUnavailable, *outage.AWAY):
        return NO_DATABASE
