"""The HTTP connections of one event loop, and the small errands that outlive a call."""

import asyncio
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import aiohappyeyeballs
from yarl import URL

from core.http_connection import HttpConnection
from core.outbound import Guard

Arrived = HttpConnection

# Shorter than the 5 s after which uvicorn and Node close an idle connection: a request that meets
# the closing would leave us not knowing whether it was taken.
_KEEPALIVE_S = 4.0
_ERRAND_ENDS_S = 2.0
# Before the next address of a name is tried beside the first.
_NEXT_ADDRESS_S = 0.25


@dataclass(frozen=True, slots=True)
class HttpOrigin:
    """An origin: connections to it serve whoever goes there."""

    host: str
    port: int
    tls: bool


class ConnectLimits(Protocol):
    @property
    def connect_s(self) -> float: ...


class StaleConnection(ConnectionError):
    """A kept connection was closed before anything was written to it."""


class Transmission:
    """One HTTP request on its way; `left` once a byte of it may have."""

    __slots__ = ("connection", "left")

    def __init__(self, connection: HttpConnection) -> None:
        self.connection = connection
        self.left = False

    async def send(self, data: bytes, idle_s: float) -> Arrived:
        if not self.connection.is_usable:
            raise StaleConnection("closed while it was kept")
        self.left = True
        await self.connection.ask(data, idle_s)
        return self.connection


class IdleConnections:
    """The connections to one place that are free, the last used first."""

    __slots__ = ("_all", "free")

    def __init__(self) -> None:
        self.free: list[HttpConnection] = []
        self._all: set[HttpConnection] = set()

    def __len__(self) -> int:
        """All of the place, those in use too."""
        return len(self._all)

    def add(self, connection: HttpConnection) -> None:
        self._all.add(connection)

    def keep(self, connection: HttpConnection) -> None:
        self.free.append(connection)

    def forget(self, connection: HttpConnection) -> None:
        self._all.discard(connection)
        if connection in self.free:
            self.free.remove(connection)

    def close(self, *, unused_since: float) -> None:
        while self.free and self.free[0].free_since <= unused_since:
            self.free.pop(0).close()

    def abort(self) -> None:
        for connection in self._all:
            connection.abort()


class ConnectionPool:
    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._idle: dict[HttpOrigin, IdleConnections] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._errands: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Open connections, to whatever place."""
        return sum(map(len, self._idle.values()))

    def origin_of(self, url: URL) -> HttpOrigin:
        return HttpOrigin(url.raw_host or "", url.port or 0, url.scheme == "https")

    def has_kept(self, origin: HttpOrigin) -> bool:
        """A connection that was kept and that nobody has hung up."""
        idle = self._idle.get(origin)
        return idle is not None and any(kept.is_usable for kept in idle.free)

    async def connect(self, origin: HttpOrigin, limits: ConnectLimits) -> HttpConnection:
        """One that was kept, or a new one."""
        idle = self._idle.get(origin)
        if idle is None:
            idle = self._idle[origin] = IdleConnections()
        oldest = asyncio.get_running_loop().time() - _KEEPALIVE_S
        while idle.free:
            kept = idle.free.pop()
            if kept.free_since > oldest:
                return kept
            kept.close()
        if self._sweeper is None:
            self._sweep()
        async with asyncio.timeout(limits.connect_s):
            return await self._connected(origin, idle)

    async def _connected(self, origin: HttpOrigin, idle: IdleConnections) -> HttpConnection:
        loop = asyncio.get_running_loop()
        found = await self.guard.resolve(origin.host, origin.port)
        made = await aiohappyeyeballs.start_connection(
            found,
            loop=loop,
            happy_eyeballs_delay=_NEXT_ADDRESS_S,
            socket_factory=self.guard.open_socket,
        )
        try:
            _transport, connection = await loop.create_connection(
                lambda: HttpConnection(loop, idle),
                sock=made,
                ssl=_tls() if origin.tls else None,
                server_hostname=origin.host.rstrip(".") if origin.tls else None,
            )
        except BaseException:
            made.close()
            raise
        return connection

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(_KEEPALIVE_S / 2, self._sweep)
        for idle in self._idle.values():
            idle.close(unused_since=loop.time() - _KEEPALIVE_S)

    def spawn(self, errand: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        return task

    async def aclose(self) -> None:
        if self._errands:
            await asyncio.wait(self._errands, timeout=_ERRAND_ENDS_S)
        for task in list(self._errands):
            task.cancel()
        await asyncio.gather(*self._errands, return_exceptions=True)
        if self._sweeper is not None:
            self._sweeper.cancel()
        for idle in self._idle.values():
            idle.abort()
        # Transports close in the loop's next turn.
        await asyncio.sleep(0)


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """One in a process: to make it, the machine's certificates are read."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
