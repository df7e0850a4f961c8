"""What a process needs to run calls: one set of hands for each event loop."""

from __future__ import annotations

import contextlib
from typing import Any

from django.conf import settings
from psycopg_pool import AsyncConnectionPool

from calls.execution import Engine, owner_name
from calls.leases import Leases
from core import listen, loop
from core.journal import Journal


class Hands:
    def __init__(self) -> None:
        url = settings.DATABASE_URL
        self.pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=4,
            open=False,
            timeout=5,
            kwargs={"autocommit": True, "connect_timeout": 2, "application_name": "countersign"},
        )
        self.journal = Journal(url)
        self.listener = listen.Listener(url)
        self.engine = Engine(self.journal, owner=owner_name())
        self.leases = Leases(self.engine, self.pool)
        self.listener.on(listen.CANCEL, self.leases.look)
        self.listener.on(listen.ANSWERED, self.engine.answered)
        self.started = False

    async def start(self) -> None:
        if not self.started:
            self.started = True
            await self.pool.open()
            self.listener.start()
            self.leases.start()
            self.engine.safekeeping.start()

    async def aclose(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for part in (self.pool.close, self.journal.aclose):
                stack.push_async_callback(part)
            keeping = self.engine.safekeeping.aclose
            for part in (self.listener.aclose, self.leases.aclose, keeping, self.engine.aclose):
                stack.push_async_callback(part)


_background: Hands | None = None


async def _on_this_loop() -> Hands:
    global _background  # noqa: PLW0603 one per process is the point
    if _background is None:
        _background = Hands()
        await _background.start()
    return _background


def background() -> Hands:
    """The hands of this process's background loop, for Celery's threads and for the sweep."""
    return loop.run(_on_this_loop())


def started() -> Hands | None:
    """The same, if anything was ever run here."""
    return _background
