"""A server at a URL: Streamable HTTP, or where that is not spoken, what came before it."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from core.connection_pool import ConnectionPool
from core.kept_english import gettext as _
from registry.upstream.session.calling import TaskErrand, UpstreamCall
from registry.upstream.session.http import Hear, HttpServer
from registry.upstream.session.http_sse import Stream
from registry.upstream.session.http_statuses import not_greeted
from registry.upstream.session.stdio import StdioServer
from registry.upstream.values import (
    CallReply,
    Limits,
    NotGreeted,
    NotSent,
    Target,
    UpstreamError,
)
from registry.upstream.wire import LEGACY, WireMessage

# Source: MCP 2025-11-25, basic/transports, "Backwards Compatibility": whoever refuses a greeting
# like this may be of 2024-11-05. What is about us, and not about the greeting, is left out.
_MAY_BE_OLDER = set(range(400, 500)) - {401, 402, 403, 407, 408, 429}


class EventServer(StdioServer):
    """A server of HTTP with SSE: the conversation of stdio, over a stream and posts."""

    def __init__(self, web: "WebServer", ids: Iterator[int], words: tuple[str, ...] = ()) -> None:
        super().__init__(web.target, ids, words)
        self._web = web
        self.beside = self._beside

    def _beside(self, message: WireMessage) -> None:
        self._web.beside(message)

    def _same_for(self, words: tuple[str, ...]) -> "EventServer":
        return EventServer(self._web, self._ids, words)

    async def _start(self) -> Stream:
        stream = await self._spawn()
        try:
            wanted = self.target.wanted
            await self._initialize(stream, wanted if wanted in LEGACY else LEGACY[0])
            await stream.posted()
        except NotSent:
            raise
        except UpstreamError as error:
            raise not_greeted(error) from error
        return stream

    async def _spawn(self) -> Stream:
        if self._child:
            await self._child.stop()
        if self._closed:
            raise NotSent(_("The server was removed."))
        stream = self._child = await self._web.stream(self._stderr)
        return stream


class WebServer(HttpServer):
    def __init__(self, target: Target, pool: ConnectionPool, ids: Iterator[int]) -> None:
        super().__init__(target, pool, ids)
        self._older = EventServer(self, ids) if target.by_events else None
        self._looking = asyncio.Lock()

    @property
    def by_events(self) -> bool:
        return self._older is not None

    async def stream(self, stderr: Any) -> Stream:
        return await Stream.open(self._pool, self._url, self._base, stderr)

    async def call(self, call: UpstreamCall) -> CallReply:
        if self._older is None:
            try:
                return await super().call(call)
            except NotGreeted as error:
                older = await self._look_back(error, call.limits)
            return await older.call(call)
        try:
            return await self._older.call(call)
        except NotGreeted as error:
            await self._look_ahead(error)
        return await super().call(call)

    async def session_for(self, call: UpstreamCall, limits: Limits) -> HttpServer | StdioServer:
        if self._older is not None:
            return await self._older.session_for(call, limits)
        try:
            return await super().session_for(call, limits)
        except NotGreeted as error:
            older = await self._look_back(error, limits)
        return await older.session_for(call, limits)

    async def ask(self, method: str, params: bytes, limits: Limits) -> dict[str, Any]:
        if self._older is None:
            return await super().ask(method, params, limits)
        return await self._older.ask(method, params, limits)

    async def watch(self, uris: Sequence[str], hear: Hear) -> None:
        if self._older is None:
            await super().watch(uris, hear)
        else:
            await self._older.watch(uris, hear)

    async def attend(self, opened: asyncio.Event) -> None:
        if self._older is None:
            await super().attend(opened)
        else:
            await self._older.attend(opened)

    async def about_task(self, errand: TaskErrand, limits: Limits) -> WireMessage:
        if self._older is None:
            return await super().about_task(errand, limits)
        return await self._older.about_task(errand, limits)

    async def listen_to_task(self, task: str, hear: Hear) -> None:
        if self._older is None:
            await super().listen_to_task(task, hear)
        else:
            await self._older.listen_to_task(task, hear)

    async def introduce(self, limits: Limits) -> tuple[str, dict[str, Any]]:
        if self._older is None:
            try:
                return await super().introduce(limits)
            except NotGreeted as error:
                older = await self._look_back(error, limits)
            return await older.introduce(limits)
        try:
            return await self._older.introduce(limits)
        except NotGreeted as error:
            await self._look_ahead(error)
        return await super().introduce(limits)

    async def close(self) -> None:
        if self._older:
            await self._older.close()
        await super().close()

    async def _look_back(self, error: NotGreeted, limits: Limits) -> EventServer:
        """The older server that refused the greeting; raises `error` if there is none."""
        if error.status not in _MAY_BE_OLDER:
            raise error
        async with self._looking:
            # Somebody else may have found it while we waited.
            if self._older is None:
                self._older = await self._opened(error, limits)
            return self._older

    async def _opened(self, error: NotGreeted, limits: Limits) -> EventServer:
        older = EventServer(self, self._ids)
        try:
            await older.introduce(limits)
        except BaseException as failed:
            await older.close()
            raise error if isinstance(failed, UpstreamError) else failed from None
        return older

    async def _look_ahead(self, error: NotGreeted) -> None:
        """It has no such stream any more: perhaps it has become a newer one."""
        older = self._older
        if error.status not in _MAY_BE_OLDER or older is None:
            raise error
        self._older = None
        await older.close()
