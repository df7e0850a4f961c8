"""Everything a process needs to run calls, one for each event loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from weakref import WeakSet

from django.conf import settings

from calls.running.execution import Engine, owner_name
from calls.running.leases import Leases
from calls.running.stale_servers import StaleServers
from core import listen, loop
from core.connections import KEEPALIVE, PLANS, AsyncConnection, Pool
from core.journal import GroupCommit

_all: WeakSet[CallRuntime] = WeakSet()


def all_runtimes() -> Iterator[CallRuntime]:
    """Those of this process that have started."""
    return (runtime for runtime in list(_all) if runtime.started)


class CallRuntime:
    def __init__(self) -> None:
        _all.add(self)
        url = settings.DATABASE_DIRECT_URL
        self.pool = Pool(
            url,
            min_size=1,
            max_size=4,
            open=False,
            timeout=5,
            connection_class=AsyncConnection,
            kwargs={
                "autocommit": True,
                "application_name": "countersign",
                "options": PLANS,
                **KEEPALIVE,
            },
        )
        self.journal = GroupCommit(url)
        self.listener = listen.Listener(url)
        self.engine = Engine(self.journal, owner=owner_name())
        self.leases = Leases(self.engine, self.pool)
        self.stale_servers = StaleServers(self.engine, self.listener)
        self.listener.on(listen.CANCEL, self.leases.look)
        self.listener.on(listen.ANSWERED, self.engine.answered)
        self.started = False

    async def start(self) -> None:
        if not self.started:
            self.started = True
            await self.pool.open()
            self.listener.start()
            self.leases.task.start()
            self.stale_servers.task.start()
            self.engine.outcome_writer.start()

    async def aclose(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for part in (self.pool.close, self.journal.aclose):
                stack.push_async_callback(part)
            keeping = self.engine.outcome_writer.aclose
            leases = self.leases.task.aclose
            for part in (self.listener.aclose, leases, keeping, self.engine.aclose):
                stack.push_async_callback(part)
            stack.push_async_callback(self.stale_servers.task.aclose)


_background: CallRuntime | None = None


async def _on_this_loop() -> CallRuntime:
    global _background  # noqa: PLW0603 one per process is the point
    if _background is None:
        _background = CallRuntime()
        await _background.start()
    return _background


def background() -> CallRuntime:
    """The hands of this process's background loop, for Celery's threads and for the sweep."""
    return loop.run(_on_this_loop())


def started() -> CallRuntime | None:
    """The same, if anything was ever run here."""
    return _background
