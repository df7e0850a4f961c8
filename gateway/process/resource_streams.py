"""Resource updates: one stream for each server, shared by its subscribers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable
from weakref import WeakValueDictionary

from calls.running.execution import Engine, WatchFailed
from core.events_in_time import set_within
from core.listen import SUBSCRIBED, Listener
from registry.publishing.published_tools import ServerConnection

log = logging.getLogger(__name__)

Tell = Callable[[str], None]
# A server that ends the stream is asked again, less and less often.
FIRST_S, LONGEST_S = 0.5, 60.0


class ResourceStreams:
    def __init__(self, engine: Engine, listener: Listener) -> None:
        self._engine = engine
        self._watches: dict[str, _Watch] = {}
        # Of sessions whose streams hang here: rung when they subscribe to something else.
        self._nudges: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        listener.on(SUBSCRIBED, self._ring)

    def nudge(self, session: str) -> asyncio.Event:
        return self._nudges.setdefault(session, asyncio.Event())

    def _ring(self, session: str) -> None:
        if nudge := self._nudges.get(session):
            nudge.set()

    def join(self, connection: ServerConnection, uri: str, tell: Tell) -> None:
        watch = self._watches.get(connection.key)
        if watch is None:
            watch = self._watches[connection.key] = _Watch(self._engine, connection)
        watch.join(uri, tell)

    def leave(self, connection: ServerConnection, uri: str, tell: Tell) -> None:
        watch = self._watches.get(connection.key)
        if watch is not None and not watch.leave(uri, tell):
            del self._watches[connection.key]

    async def aclose(self) -> None:
        watches, self._watches = list(self._watches.values()), {}
        for watch in watches:
            await watch.aclose()


class _Watch:
    def __init__(self, engine: Engine, connection: ServerConnection) -> None:
        self._engine = engine
        self._connection = connection
        self._wanted: dict[str, set[Tell]] = defaultdict(set)
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"watch {connection.key}")

    def join(self, uri: str, tell: Tell) -> None:
        if uri not in self._wanted:
            self._changed.set()
        self._wanted[uri].add(tell)

    def leave(self, uri: str, tell: Tell) -> bool:
        """Whether anybody is left."""
        self._wanted[uri].discard(tell)
        if not self._wanted[uri]:
            del self._wanted[uri]
            self._changed.set()
        if not self._wanted:
            self._task.cancel()
        return bool(self._wanted)

    async def aclose(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        pause_s = FIRST_S
        while True:
            # Whoever comes at the same moment shares the stream.
            await asyncio.sleep(0)
            self._changed.clear()
            began = asyncio.get_running_loop().time()
            await self._watch_until_changed()
            if self._changed.is_set():
                continue
            lasted_s = asyncio.get_running_loop().time() - began
            pause_s = FIRST_S if lasted_s > LONGEST_S else min(2 * pause_s, LONGEST_S)
            await set_within(self._changed, pause_s)

    async def _watch_until_changed(self) -> None:
        """Watches one set of resources. A stream's set is fixed, so that another set needs a new
        stream."""
        watching = self._engine.watch(self._connection, sorted(self._wanted), self._on_update)
        tasks = [asyncio.create_task(watching), asyncio.create_task(self._changed.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for said in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(said, WatchFailed):
                    log.info("%s: %s", self._connection.key, said)

    def _on_update(self, uri: str) -> None:
        """It may be a part of what somebody subscribed to."""
        for wanted, tells in list(self._wanted.items()):
            if uri == wanted or uri.startswith(wanted.rstrip("/") + "/"):
                for tell in list(tells):
                    tell(uri)
