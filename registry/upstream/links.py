"""The HTTP connections of one event loop, and the small errands that outlive a call."""

import asyncio
import select
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDictProxy
from yarl import URL

from core.outbound import Guard, GuardedResolver
from registry.upstream.values import Limits

# Shorter than the 5 s after which uvicorn and Node close an idle connection: a request that meets
# the closing would leave us not knowing whether it was taken.
_KEEPALIVE_S = 4.0
_ERRAND_ENDS_S = 2.0
_HUNG_UP = getattr(select, "POLLRDHUP", 0)


class Stale(aiohttp.ClientConnectionError):
    """A kept connection was closed before anything was written to it."""


class Arrived:
    """The head of a response, and its body while it comes."""

    __slots__ = ("_connection", "content", "headers", "status")

    def __init__(
        self, connection: Connection, message: RawResponseMessage, content: StreamReader
    ) -> None:
        self._connection = connection
        self.status = message.code
        self.headers: CIMultiDictProxy[str] = message.headers
        self.content = content

    def close(self) -> None:
        self._connection.close()

    def release(self) -> None:
        """Keep the connection for the next request, unless there is more to come on it."""
        self._connection.release()


class Road:
    """One HTTP request on its way, from a connection to the head of its response.

    aiohttp's pool, TLS and parser, and a request that is written in one piece by ourselves: its
    session costs twice as much per call, and cannot say whether a byte has left.
    """

    __slots__ = ("connection", "left")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.left = False

    async def send(self, data: bytes, idle_s: float) -> Arrived:
        protocol = self.connection.protocol
        if protocol is None or protocol.transport is None or _is_over(protocol):
            raise Stale("closed while it was kept")
        _expect_response(protocol, idle_s)
        self.left = True
        protocol.transport.write(data)
        protocol.start_timeout()
        message, content = await protocol.read()
        while 100 <= message.code < 200 and message.code != 101:
            message, content = await protocol.read()
        return Arrived(self.connection, message, content)


class Links:
    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._connector: aiohttp.TCPConnector | None = None
        self._errands: set[asyncio.Task[None]] = set()

    def place(self, url: URL) -> aiohttp.ClientRequest:
        """Where to connect to, in the form that aiohttp's pool asks for."""
        return aiohttp.ClientRequest("POST", url, loop=asyncio.get_running_loop())

    async def connect(self, place: aiohttp.ClientRequest, limits: Limits) -> Connection:
        return await self._pool().connect(place, traces=[], timeout=_connecting(limits.connect_s))

    def spawn(self, errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def aclose(self) -> None:
        if self._errands:
            await asyncio.wait(self._errands, timeout=_ERRAND_ENDS_S)
        for task in list(self._errands):
            task.cancel()
        await asyncio.gather(*self._errands, return_exceptions=True)
        if self._connector is not None:
            await self._connector.close()

    def _pool(self) -> aiohttp.TCPConnector:
        if self._connector is None:
            self._connector = aiohttp.TCPConnector(
                resolver=GuardedResolver(self.guard),
                socket_factory=self.guard.open_socket,
                limit=0,
                limit_per_host=0,
                keepalive_timeout=_KEEPALIVE_S,
            )
        return self._connector


def _is_over(protocol: ResponseHandler) -> bool:
    if protocol.should_close or not protocol.is_connected():
        return True
    # The server's end may have come while this loop was busy, and not been looked at yet. Found
    # out now, it is certain that the call was not taken; found out later, it is not.
    assert protocol.transport is not None
    poll = select.poll()
    poll.register(protocol.transport.get_extra_info("socket").fileno(), _HUNG_UP)
    return bool(poll.poll(0))


def _expect_response(protocol: ResponseHandler, idle_s: float) -> None:
    protocol.set_response_params(
        read_until_eof=True, auto_decompress=False, read_timeout=idle_s, read_bufsize=64 * 1024
    )


@lru_cache
def _connecting(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(connect=seconds)
