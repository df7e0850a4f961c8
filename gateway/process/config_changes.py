"""Config-change fan-out: one poller, many subscribers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from core.errors import RecordUnavailable
from core.listen import CHANGED, Listener

log = logging.getLogger(__name__)

# A lost nudge costs this much.
EVERY_S = 0.5

Seen = TypeVar("Seen")


class ConfigChangeNotifier(Generic[Seen]):
    """Calls everybody who joined with what is true now, after each change of configuration."""

    def __init__(self, listener: Listener, fresh: Callable[[], Awaitable[Seen]]) -> None:
        self._fresh = fresh
        self._listeners: set[Callable[[Seen], None]] = set()
        self._nudge = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        listener.on(CHANGED, lambda _payload: self._nudge.set())

    def __len__(self) -> int:
        return len(self._listeners)

    def join(self, listener: Callable[[Seen], None]) -> None:
        self._listeners.add(listener)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="config changes")

    def leave(self, listener: Callable[[Seen], None]) -> None:
        self._listeners.discard(listener)

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        seen: Seen | None = None
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nudge.wait(), EVERY_S)
            self._nudge.clear()
            try:
                now = await self._fresh()
            except RecordUnavailable:
                # What cannot be known now is looked at again in a moment.
                continue
            except Exception:
                log.exception("What changed could not be read; it is tried again.")
                continue
            if now is not seen:
                seen = now
                self._tell(now)

    def _tell(self, now: Seen) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(now)
            except Exception:
                # The others are told all the same.
                log.exception("A listener to changes of configuration failed.")
