"""Config-change fan-out: one poller, many subscribers."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from core.errors import RecordUnavailable
from core.listen import CHANGED, Listener
from core.nudged_task import NudgedTask

log = logging.getLogger(__name__)

# A lost nudge costs this much.
EVERY_S = 0.5

Seen = TypeVar("Seen")


class ConfigChangeNotifier(Generic[Seen]):
    """Calls everybody who joined with what is true now, after each change of configuration."""

    def __init__(self, listener: Listener, fresh: Callable[[], Awaitable[Seen]]) -> None:
        self._fresh = fresh
        self._listeners: set[Callable[[Seen], None]] = set()
        self._seen: Seen | None = None
        self._task = NudgedTask("config changes", self._look, every_s=lambda: EVERY_S)
        listener.on(CHANGED, self._task.nudge)

    def __len__(self) -> int:
        return len(self._listeners)

    def join(self, listener: Callable[[Seen], None]) -> None:
        self._listeners.add(listener)
        self._task.start()

    def leave(self, listener: Callable[[Seen], None]) -> None:
        self._listeners.discard(listener)

    async def aclose(self) -> None:
        await self._task.aclose()

    async def _look(self, _is_nudged: bool) -> None:
        # What cannot be known now is looked at again in a moment.
        with contextlib.suppress(RecordUnavailable):
            now = await self._fresh()
            if now is not self._seen:
                self._seen = now
                self._tell(now)

    def _tell(self, now: Seen) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(now)
            except Exception:
                # The others are told all the same.
                log.exception("A listener to changes of configuration failed.")
