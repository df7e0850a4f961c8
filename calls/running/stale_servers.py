"""Connections, sessions and processes of servers that were changed, disabled or removed: closed
once no call runs over them."""

from __future__ import annotations

from channels.db import database_sync_to_async

from calls.running.execution import Engine
from core.listen import CHANGED, Listener
from core.nudged_task import NudgedTask
from registry import connections

# A lost nudge costs this much, and so does another command in the host's catalogue.
EVERY_S = 30.0
# Between two looks, however much is changed, and while calls still run over what is stale.
AT_LEAST_S = 1.0


class StaleServers:
    def __init__(self, engine: Engine, listener: Listener) -> None:
        self._engine = engine
        self._is_all_closed = True
        self.task = NudgedTask(
            "stale servers", self._look, every_s=self._pause_s, rest_s=AT_LEAST_S
        )
        listener.on(CHANGED, self.task.nudge)

    def _pause_s(self) -> float:
        return EVERY_S if self._is_all_closed else AT_LEAST_S

    async def _look(self, _is_nudged: bool) -> None:
        self._is_all_closed = False
        self._is_all_closed = await self._close()

    async def _close(self) -> bool:
        """False where calls still run over what is stale."""
        names = {key.rpartition(":")[0] for key in self._engine.server_keys}
        if not names:
            return True
        read = database_sync_to_async(connections.current_keys, thread_sensitive=False)
        return await self._engine.close_stale(await read(names))
