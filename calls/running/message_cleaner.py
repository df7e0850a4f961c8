"""Messages of a running call that are cleaned beside the loop, one after the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

Clean = Callable[[Any], Any]

# Of more that wait, the oldest are left out.
WAITING_MAX = 100
# So long the end of a call waits for its last messages.
DRAIN_S = 2.0


class MessageCleaner:
    """Cleans messages of one call in a thread, and passes them on in their order."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Any, Clean, Clean]] = deque(maxlen=WAITING_MAX)
        self._task: asyncio.Task[None] | None = None

    def clean(self, message: Any, clean: Clean, pass_on: Clean) -> None:
        self._waiting.append((message, clean, pass_on))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        while self._waiting:
            message, clean, pass_on = self._waiting.popleft()
            pass_on(await asyncio.to_thread(clean, message))

    async def drain(self) -> None:
        """Returns also where the call is cancelled meanwhile: its reply is there."""
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self._task], timeout=DRAIN_S)

    def close(self) -> None:
        """Passes on nothing more."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
