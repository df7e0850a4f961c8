"""Reading a request's body: so many bytes, so many seconds, no more."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from gateway.http.request_checks import MAX_BODY, too_large
from gateway.protocol.errors import CLOSE, RpcError

ARRIVE_S = 10.0
_TOO_SLOW = "the body is too slow"
DISCARD, DISCARD_S = 4 * MAX_BODY, 1.0


class Disconnected(Exception):
    """The client went away before it had asked anything."""


async def read(receive: Any, *, limit: int) -> bytes:
    # By hand: `asyncio.timeout` costs five times as much, and nearly every body is here already.
    task = asyncio.current_task()
    assert task is not None
    timer = asyncio.get_running_loop().call_later(ARRIVE_S, task.cancel, _TOO_SLOW)
    try:
        return await _read(receive, limit)
    except asyncio.CancelledError as error:
        if error.args != (_TOO_SLOW,):
            raise
        task.uncancel()
        message = f"The body did not arrive within {ARRIVE_S:.0f} seconds."
        raise RpcError(408, message, headers=(CLOSE,)) from None
    finally:
        timer.cancel()


async def discard(receive: Any) -> None:
    """Take in what is under way before the connection is closed, within reason: a client that is
    still sending then would see a broken connection instead of the answer."""
    with contextlib.suppress(TimeoutError, RpcError, Disconnected):
        async with asyncio.timeout(DISCARD_S):
            await _read(receive, DISCARD)


async def _read(receive: Any, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise too_large(limit)
        if not message.get("more_body", False):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)
