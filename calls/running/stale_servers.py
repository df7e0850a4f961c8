"""Connections, sessions and processes of servers that were changed, disabled or removed: closed
once no call runs over them."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from channels.db import database_sync_to_async

from calls.running.execution import Engine
from core.listen import CHANGED, Listener
from registry import connections

log = logging.getLogger(__name__)

# A lost nudge costs this much, and so does another command in the host's catalogue.
EVERY_S = 30.0
# Between two looks, however much is changed, and while calls still run over what is stale.
AT_LEAST_S = 1.0


class StaleServers:
    def __init__(self, engine: Engine, listener: Listener) -> None:
        self._engine = engine
        self._nudge = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        listener.on(CHANGED, lambda _payload: self._nudge.set())

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="stale servers")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        is_all_closed = True
        while True:
            await asyncio.sleep(AT_LEAST_S)
            with contextlib.suppress(TimeoutError):
                wait_s = EVERY_S if is_all_closed else AT_LEAST_S
                await asyncio.wait_for(self._nudge.wait(), wait_s)
            self._nudge.clear()
            try:
                is_all_closed = await self._close()
            except Exception:
                log.exception("What servers there are could not be read; it is tried again.")
                is_all_closed = False

    async def _close(self) -> bool:
        """False where calls still run over what is stale."""
        names = {key.rpartition(":")[0] for key in self._engine.server_keys}
        if not names:
            return True
        read = database_sync_to_async(connections.current_keys, thread_sensitive=False)
        return await self._engine.close_stale(await read(names))
