"""The door to upstream servers: discover what one offers, call one of its tools."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence

from core.outbound import Guard
from registry.upstream import discovery
from registry.upstream.calling import Call
from registry.upstream.http import HttpServer
from registry.upstream.links import Links
from registry.upstream.values import Discovery, Limits, NotSent, OnLog, OnProgress, Reply, Target

_DEFAULTS = Limits()


class Upstreams:
    """All connections and processes of one event loop. `aclose()` leaves none behind."""

    def __init__(self, *, networks: Sequence[str] = (), stdio_allowed: bool = True) -> None:
        self._links = Links(Guard(networks))
        self._stdio_allowed = stdio_allowed
        self._servers: dict[str, HttpServer] = {}
        self._ids = itertools.count(1)
        self._closed = False

    async def discover(self, target: Target, limits: Limits = _DEFAULTS) -> Discovery:
        server = await self._server(target)
        return await discovery.discover(server, limits, by_http=target.transport == "http")

    async def call_tool(
        self,
        target: Target,
        *,
        name: str,
        arguments: bytes,
        limits: Limits = _DEFAULTS,
        param_headers: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        on_log: OnLog | None = None,
        cancel: asyncio.Event | None = None,
    ) -> Reply:
        """Send one call, at most once. `arguments` must be one JSON object, checked before."""
        server = await self._server(target)
        return await server.call(
            Call(
                name=name,
                arguments=arguments,
                limits=limits,
                param_headers=param_headers or {},
                on_progress=on_progress,
                on_log=on_log,
                cancel=cancel,
            )
        )

    async def close_target(self, key: str) -> None:
        if server := self._servers.pop(key, None):
            await server.close()

    async def aclose(self) -> None:
        self._closed = True
        await asyncio.gather(*(self.close_target(key) for key in list(self._servers)))
        await self._links.aclose()

    async def _server(self, target: Target) -> HttpServer:
        server = self._servers.get(target.key)
        if server and (server.target is target or server.target == target):
            return server
        if self._closed:
            raise NotSent("Countersign is shutting down.")
        return self._open(target)

    def _open(self, target: Target) -> HttpServer:
        server = HttpServer(target, self._links, self._ids)
        self._servers[target.key] = server
        return server
