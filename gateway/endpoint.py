"""The agents' endpoint: a raw ASGI application, in front of everything that Django does.

Thousands of requests a second pass here on one core. What is refused is refused in the order of
what it costs us: address, origin, size, token, body, meaning.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from django.conf import settings

from accounts.tokens import Bearer
from core.errors import RecordUnavailable
from gateway import body, door, listening, protocol
from gateway.body import Disconnected
from gateway.exchange import Exchange
from gateway.headers import Headers
from gateway.here import here, leave
from gateway.known import BODY, KNOWN, Known
from gateway.refusals import CLOSE, Refusal, unavailable
from gateway.runtime import Runtime, Snapshot
from gateway.stream import respond
from gateway.turnstile import Turnstile
from gateway.used import Used
from registry.published import PublishedToolset

LOOK_AGAIN_S = 0.05
LEAVE_S = 3.0
# Of the time that a process has to end, for answers on their way.
ANSWERED_S = 5.0


class Endpoint:
    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        self._doorman = door.Doorman()
        self._used = Used()
        self._looked_at = float("-inf")
        self._turnstile = Turnstile()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            with self._turnstile:
                await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            # A WebSocket: refused before it is accepted.
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            if scope["path"] == "/healthz":
                await self._health(send)
                return
            exchange = await self._admit(scope)
            if scope["method"] == "GET":
                await listening.get(exchange, receive, send)
                return
            content = scope.get(BODY)
            if content is None:
                content = await body.read(receive, limit=door.MAX_BODY)
            await protocol.answer(exchange, content, receive, send)
        except Refusal as refusal:
            await self._refuse(scope, receive, send, refusal)
        except RecordUnavailable as error:
            await self._refuse(scope, receive, send, unavailable(error))
        except Disconnected:
            return

    async def _refuse(self, scope: Any, receive: Any, send: Any, refusal: Refusal) -> None:
        # Whoever expects to be told before sending a body has not sent it.
        expects = any(name == b"expect" for name, _ in scope["headers"])
        if CLOSE in refusal.headers and not expects and BODY not in scope:
            await body.discard(receive)
        await respond(send, refusal.status, refusal.body(), refusal.headers)

    async def _admit(self, scope: Any) -> Exchange:
        known: Known | None = scope.get(KNOWN)
        headers = Headers(scope["headers"])
        if known is not None and known.address is not None:
            toolset, server = known.address
        else:
            toolset, server = _address(scope)
            door.check_origin(headers)
            door.check_size(headers)
        runtime = self._runtime or await self._start()
        snapshot = await runtime.fresh()
        try:
            bearer, found = self._known(snapshot, headers, toolset, server)
        except Refusal:
            snapshot = await self._look_again(runtime, headers)
            bearer, found = self._known(snapshot, headers, toolset, server)
        if scope["method"] == "GET":
            door.check_ear(headers)
        elif known is None or known.address is None:
            door.check_form(headers)
            if known is not None:
                known.address = toolset, server
        self._used.note(bearer.token_id)
        tools = found.by_server[server] if server else found.by_exposed
        return Exchange(runtime, snapshot, bearer, found, server, tools, headers, known)

    def _known(
        self, snapshot: Snapshot, headers: Headers, toolset: str, server: str
    ) -> tuple[Bearer, PublishedToolset]:
        bearer = self._doorman.bearer(headers, snapshot.tokens)
        return bearer, _toolset(snapshot, toolset, server, bearer.agent_id)

    async def _look_again(self, runtime: Runtime, headers: Headers) -> Snapshot:
        """A token or toolset may be a moment old. Strangers cannot make us look all the time."""
        if not door.shows_token(headers):
            return await runtime.fresh()
        # Whoever comes within the same moment shares one look.
        await asyncio.sleep(max(0.0, self._looked_at + LOOK_AGAIN_S - time.monotonic()))
        self._looked_at = time.monotonic()
        return await runtime.newest()

    async def _start(self) -> Runtime:
        self._runtime = await here()
        return self._runtime

    async def _health(self, send: Any) -> None:
        runtime = self._runtime or await self._start()
        await runtime.fresh()
        await respond(send, 200, b'{"status":"ok"}')

    async def _lifespan(self, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                # Calls that are cut off are written down before the record is closed.
                await self._turnstile.empty(seconds=LEAVE_S)
                await leave()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})

    def hurry(self) -> None:
        """This process is about to end: who would wait for longer comes back to another one."""
        if self._runtime is not None:
            self._runtime.watch.hurry(settings.STOP_WITHIN_S - ANSWERED_S)


def _address(scope: Any) -> tuple[str, str]:
    """/mcp/<toolset> or /mcp/<toolset>/<server>."""
    parts = scope["path"].split("/")
    if len(parts) not in (3, 4) or parts[1] != "mcp" or not all(parts[2:]):
        raise _nothing_here()
    if scope["method"] not in ("POST", "GET"):
        message = "Only POST here, and GET beside a session: there is none to DELETE."
        raise Refusal(405, message, headers=((b"allow", b"POST"), CLOSE))
    return parts[2], parts[3] if len(parts) == 4 else ""


def _toolset(snapshot: Snapshot, slug: str, server: str, agent_id: int) -> PublishedToolset:
    """Somebody else's is told like one that does not exist."""
    toolset = snapshot.catalogue.toolset(slug)
    if toolset is None or agent_id not in toolset.agents:
        raise _nothing_here()
    if server and server not in toolset.by_server:
        raise _nothing_here()
    return toolset


def _nothing_here() -> Refusal:
    return Refusal(404, "There is no such toolset for this agent.", headers=(CLOSE,))


app = Endpoint()
