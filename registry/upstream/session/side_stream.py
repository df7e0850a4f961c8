"""The stream beside a session of an earlier revision, on which some servers ask their questions.

Source: MCP 2025-11-25, basic/transports, "Listening for Messages from the Server".
"""

import asyncio
from collections.abc import Callable

from core.connection_pool import ConnectionPool, HttpOrigin
from registry.upstream.session.agreement import Agreement
from registry.upstream.transport.http_request import BadStatus, HttpRequest, exchange
from registry.upstream.values import Limits, ProtocolError, UpstreamError
from registry.upstream.wire import WireMessage

# It may be silent for as long as nobody asks, and is opened again when it ends.
_LASTS = Limits(idle_s=3600, total_s=24 * 3600)
_AGAIN_S, _TIMES = 1.0, 5
# A server that takes longer to open it may find nobody there for its first question.
_OPENED_S = 2.0

Hear = Callable[[WireMessage], None]


class SideStream:
    def __init__(self, pool: ConnectionPool, origin: HttpOrigin, hear: Hear) -> None:
        self._pool, self._origin, self._hear = pool, origin, hear
        self._task: asyncio.Task[None] | None = None

    async def open(self, agreement: Agreement) -> None:
        """Returns when the server knows of it, or has none."""
        self.close()
        opened = asyncio.Event()
        self._task = asyncio.create_task(self._run(agreement, opened), name="standing stream")
        known = asyncio.create_task(opened.wait())
        await asyncio.wait(
            {self._task, known}, timeout=_OPENED_S, return_when=asyncio.FIRST_COMPLETED
        )
        known.cancel()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, agreement: Agreement, opened: asyncio.Event) -> None:
        for _ in range(_TIMES):
            request = HttpRequest(
                0, self._origin, agreement.listening(), b"", _LASTS, hear=self._hear
            )
            request.opened = opened
            try:
                await exchange(self._pool, request)
            except (BadStatus, ProtocolError):
                # Most have none, and say so.
                return
            except UpstreamError:
                pass
            await asyncio.sleep(_AGAIN_S)
