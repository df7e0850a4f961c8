"""The door to upstream servers: discover what one offers, call one of its tools."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from core.connection_pool import ConnectionPool
from core.kept_english import gettext as _
from core.outbound import Guard
from registry.upstream.session import discovery, input_requests, tasks
from registry.upstream.session.api import ApiServer
from registry.upstream.session.calling import UpstreamCall
from registry.upstream.session.http import HttpServer
from registry.upstream.session.pending_pages import PendingPages
from registry.upstream.session.stdio import StdioServer
from registry.upstream.session.web import WebServer
from registry.upstream.values import (
    USUAL,
    CallReply,
    Limits,
    NotSent,
    OnLists,
    OnUpdate,
    PausedCall,
    RpcErrorReply,
    ServerListing,
    Target,
    TaskRef,
)
from registry.upstream.wire import LISTS_CHANGED, PAGE_DONE, UPDATED, WireMessage

Server = WebServer | StdioServer
AnyServer = HttpServer | StdioServer


class Upstreams:
    """All connections and processes of one event loop. `aclose()` leaves none behind."""

    def __init__(
        self,
        *,
        networks: Sequence[str] = (),
        stdio_allowed: bool = True,
        on_lists: OnLists | None = None,
    ) -> None:
        """`on_lists` gets the key of each target that says by itself that its lists changed."""
        self._pool = ConnectionPool(Guard(networks))
        self._on_lists = on_lists
        self._pages = PendingPages()
        self._stdio_allowed = stdio_allowed
        self._servers: dict[str, Server] = {}
        self._ids = itertools.count(1)
        self._closed = False

    @property
    def connection_count(self) -> int:
        return len(self._pool)

    async def discover(self, target: Target, limits: Limits = USUAL) -> ServerListing:
        server = await self._server(target)
        found = await discovery.discover(server, limits, by_http=target.transport == "http")
        by_events = isinstance(server, WebServer) and server.by_events
        return replace(found, by_events=True) if by_events else found

    async def call_tool(
        self, target: Target, call: UpstreamCall, pause: PausedCall | None = None
    ) -> CallReply:
        """Send `call`, at most once, or what comes after its `pause`. If the server makes a task of
        it, also unasked, that is followed to its end."""
        if target.transport == "api":
            return await ApiServer(target, self._pool).call(call)
        first: AnyServer = self._existing(target) or await self._server(target)
        server, asked = first, None
        first.users += 1
        try:
            if call.abilities:
                server = asked = await first.session_for(call, call.limits)
                asked.users += 1
            if call.on_page is not None:
                call.note_page = partial(self._pages.wanted, target.key, on_page=call.on_page)
            if pause is not None:
                reply = input_requests.resumed(call, pause)
            else:
                try:
                    reply = await server.call(call)
                except RpcErrorReply as error:
                    # It may want a page to be opened first.
                    reply = await input_requests.called(server, call, error)
            if reply.kind == input_requests.INPUT_REQUIRED:
                reply = await input_requests.answered(server, call, reply)
            if call.on_task is None or (reply.kind != "task" and not call.as_task):
                return reply
            ref = tasks.task_of(reply, call)
            if ref is None:
                return reply
            await call.on_task(ref)
            return await self._follow(server, ref, call, is_new=True)
        finally:
            first.users -= 1
            if asked is not None:
                asked.users -= 1

    async def follow_task(self, target: Target, ref: TaskRef, call: UpstreamCall) -> CallReply:
        """Take up a task that an earlier `call` became, in this process or another."""
        first: AnyServer = await self._server(target)
        server, asked = first, None
        first.users += 1
        try:
            if call.abilities:
                server = asked = await first.session_for(call, call.limits)
                asked.users += 1
            return await self._follow(server, ref, call)
        finally:
            first.users -= 1
            if asked is not None:
                asked.users -= 1

    async def _follow(
        self, server: AnyServer, ref: TaskRef, call: UpstreamCall, *, is_new: bool = False
    ) -> CallReply:
        own: AnyServer = await server.for_task(ref.session)
        try:
            return await tasks.follow(own, ref, call, is_new=is_new)
        except asyncio.CancelledError:
            # Whoever goes on with it asks in the same session.
            own.keep(ref.session)
            raise
        finally:
            if own is not server:
                await own.close()

    async def watch(self, target: Target, uris: Sequence[str], on_update: OnUpdate) -> None:
        """Runs while the server sends updates of these resources, over a connection or process of
        its own; `on_update` gets each changed URI."""

        def hear(message: WireMessage) -> None:
            uri = (message.params or {}).get("uri")
            if message.method == UPDATED and isinstance(uri, str):
                on_update(uri)

        server = self._make_server(target)
        try:
            await server.watch(uris, hear)
        finally:
            await server.close()

    async def attend(self, target: Target, opened: asyncio.Event) -> None:
        """Runs while the server can announce list changes, over its usual connection; `opened` is
        set once it can."""
        server = await self._server(target)
        await server.attend(opened)

    def stderr(self, key: str) -> str:
        """The end of what a server's processes wrote to their standard error."""
        server = self._servers.get(key)
        return server.stderr() if isinstance(server, StdioServer) else ""

    def is_used(self, key: str) -> bool:
        """A call goes on over it."""
        server = self._servers.get(key)
        return server is not None and server.users > 0

    async def close_target(self, key: str) -> None:
        if server := self._servers.pop(key, None):
            await server.close()

    async def aclose(self) -> None:
        self._closed = True
        await asyncio.gather(*(self.close_target(key) for key in list(self._servers)))
        await self._pool.aclose()

    def _existing(self, target: Target) -> Server | None:
        server = self._servers.get(target.key)
        if server and (server.target is target or _same_target(server.target, target)):
            return server
        return None

    async def _server(self, target: Target) -> Server:
        if server := self._existing(target):
            return server
        await self.close_target(target.key)
        if self._closed:
            raise NotSent(_("Countersign is shutting down."))
        return self._servers.setdefault(target.key, self._make_server(target))

    def _make_server(self, target: Target) -> Server:
        server: Server
        if target.transport == "http":
            server = WebServer(target, self._pool, self._ids)
        elif self._stdio_allowed:
            server = StdioServer(target, self._ids)
        else:
            raise NotSent(_("Servers on stdio are not allowed here."))
        server.beside = partial(self._heard_beside, target.key)
        return server

    def _heard_beside(self, key: str, message: WireMessage) -> None:
        if self._on_lists is not None and message.method in LISTS_CHANGED:
            self._on_lists(key)
        elif message.method == PAGE_DONE:
            self._pages.done(key, (message.params or {}).get("elicitationId"))


def _same_target(one: Target, other: Target) -> bool:
    """The revision is a hint, and no reason to connect anew."""
    return (
        (one.transport, one.url, one.argv, one.cwd)
        == (other.transport, other.url, other.argv, other.cwd)
        and one.headers == other.headers
        and one.env == other.env
        and one.wanted == other.wanted
    )
