"""The HTTP connections of one event loop, and the small errands that outlive a call."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import aiohttp

from core.outbound import Guard, GuardedResolver

# Shorter than the 5 s after which uvicorn and Node close an idle connection: a request that meets
# the closing would leave us not knowing whether it was taken.
_KEEPALIVE_S = 4.0
_ERRAND_ENDS_S = 2.0


class Links:
    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._http: aiohttp.ClientSession | None = None
        self._errands: set[asyncio.Task[None]] = set()

    @property
    def http(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = self._connect()
        return self._http

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
        if self._http is not None:
            await self._http.close()

    def _connect(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self.guard),
            socket_factory=self.guard.open_socket,
            limit=0,
            limit_per_host=0,
            keepalive_timeout=_KEEPALIVE_S,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )
