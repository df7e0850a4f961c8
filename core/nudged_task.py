"""Work that a process does when nudged, and every so often, since a nudge may get lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from core.events_in_time import set_within

log = logging.getLogger(__name__)


class NudgedTask:
    """`work` is told whether a nudge came; what it raises is logged, and the next turn comes."""

    def __init__(
        self,
        name: str,
        work: Callable[[bool], Awaitable[None]],
        *,
        every_s: Callable[[], float],
        rest_s: float = 0.0,
    ) -> None:
        self._name, self._work, self._every_s, self._rest_s = name, work, every_s, rest_s
        self._nudged = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=self._name)

    def nudge(self, _payload: str = "") -> None:
        """Also listens to notifications, whatever they bring."""
        self._nudged.set()

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            if self._rest_s:
                await asyncio.sleep(self._rest_s)
            is_nudged = await set_within(self._nudged, self._every_s())
            self._nudged.clear()
            try:
                await self._work(is_nudged)
            except Exception:
                log.exception("%s: failed, and is tried again.", self._name)
