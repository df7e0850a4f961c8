"""PostgreSQL's NOTIFY, heard on one connection a process, and the configuration's number.

A notification is a nudge and may be lost with its connection: whoever listens also looks for
itself now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

import psycopg

from core.connections import KEEPALIVE, AsyncConnection
from core.process import process_name

log = logging.getLogger(__name__)

# By its connections others see that a process lives, which may have several.
NAME = "countersign listener"

CALL = "countersign_call"
CANCEL = "countersign_cancel"
ANSWERED = "countersign_answered"
CHANGED = "countersign_changed"
LEVEL = "countersign_level"
SUBSCRIBED = "countersign_subscribed"
LISTS = "countersign_lists"
PAGE = "countersign_page"
TASK = "countersign_task"

Handler = Callable[[str], None]

# Whoever has not heard the database for so long does not listen.
SILENT_S = 5.0
AGAIN_S = 0.2

# The configuration's number. Restoring a backup makes the table anew, under another number of its
# own: then this is another number too, also where `n` comes out the same.
GENERATION = "SELECT n + (tableoid::bigint << 30) FROM core_generation"


class Listener:
    """Calls each channel's handlers with the payload; keeps `generation` at most `beat_s` old."""

    def __init__(self, conninfo: str, *, beat_s: float = 0.3) -> None:
        self._conninfo = conninfo
        self._beat_s = beat_s
        self._handlers: dict[str, list[Handler]] = {}
        self._task: asyncio.Task[None] | None = None
        self.generation = 0
        # On the monotonic clock: `generation` was the truth at this moment or later.
        self.known_at = float("-inf")
        self._began_at = float("-inf")

    @property
    def is_listening(self) -> bool:
        """Begun, and not without the database's word for long."""
        heard_at = max(self.known_at, self._began_at)
        return time.monotonic() - heard_at < SILENT_S

    def on(self, channel: str, handler: Handler) -> None:
        self._handlers.setdefault(channel, []).append(handler)

    def start(self) -> None:
        if self._task is None:
            self._began_at = time.monotonic()
            self._task = asyncio.create_task(self._run(), name="listener")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                async with await self._connect() as connection:
                    await self._listen(connection)
            except (psycopg.Error, OSError, TimeoutError) as error:
                log.warning("listener: %s", str(error).strip())
            except Exception:
                log.exception("The listener failed; it connects anew.")
            await asyncio.sleep(AGAIN_S)

    async def _connect(self) -> AsyncConnection:
        return await AsyncConnection.connect(
            self._conninfo,
            autocommit=True,
            application_name=f"{NAME} {process_name()}",
            **KEEPALIVE,
        )

    async def _listen(self, connection: AsyncConnection) -> None:
        for channel in self._handlers:
            await connection.execute(f"LISTEN {channel}")
        while True:
            await self._look(connection)
            async for heard in connection.notifies(timeout=self._beat_s, stop_after=1):
                self._tell(heard.channel, heard.payload)
                # A nudge about configuration is worth a look at once.
                if heard.channel == CHANGED:
                    break

    async def _look(self, connection: AsyncConnection) -> None:
        asked_at = time.monotonic()
        cursor = await connection.execute(GENERATION)
        row = await cursor.fetchone()
        assert row is not None
        self.generation, self.known_at = int(str(row[0])), asked_at

    def _tell(self, channel: str, payload: str) -> None:
        for handler in self._handlers.get(channel, ()):
            try:
                handler(payload)
            except Exception:
                # The others are told all the same.
                log.exception("A handler of %s failed.", channel)
