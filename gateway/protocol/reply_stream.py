"""The answer to one request: one JSON document while it is quick, a stream of events once not.

A quick call pays for none of this: no task, no queue, one timer that never rings.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import orjson

from calls.running.progress import ProgressStep
from gateway.protocol.errors import Header

# Until then nobody looks whether the client is still there.
LINGER_S = 0.5
# Then a silent connection begins to look dead to proxies.
STREAM_AFTER_S = 5.0
# Where the client can come back to it: the sooner, the less is lost; but a record that cannot be
# written is refused by then, with a status.
NAMED_AFTER_S = 3.0
PING_S = 15.0
# How long whoever lost a stream waits before coming back for it.
RETRY_MS = 1_000

_STREAM: list[Header] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_OK = (
    b"200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\ncache-control: no-store\r\n"
)
_PING = b": ping\n\n"

# For what gets no further: so small that whatever the server says later is more.
TINY = 1e-6

OnGone = Callable[[], Awaitable[object]]


async def respond(send: Any, status: int, body: bytes, headers: tuple[Header, ...] = ()) -> None:
    # A server of ours takes the usual answer in one piece, and with one write.
    whole = getattr(send, "whole", None)
    if whole is not None and status == 200 and not headers and whole(_OK % len(body), body):
        return
    start = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def accepted(send: Any) -> None:
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 202, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


class EventIds(Protocol):
    """Names for the events of a stream, by which it can be taken up again."""

    def first(self) -> str: ...

    def here(self) -> str: ...


def event(message: bytes, name: str = "") -> bytes:
    """One server-sent event; JSON that stands on several lines keeps them."""
    if b"\n" in message or b"\r" in message:
        message = b"\ndata: ".join(message.splitlines())
    named = b"id: %b\n" % name.encode() if name else b""
    return b"%bevent: message\ndata: %b\n\n" % (named, message)


def _priming(trail: EventIds) -> bytes:
    """Source: MCP 2025-11-25, basic/transports, "Sending Messages to the Server"."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (trail.first().encode(), RETRY_MS)


class ReplyStream:
    def __init__(self, receive: Any, send: Any) -> None:
        self._receive = receive
        self._send = send
        self._streaming = False
        self._events: list[bytes] = []
        self._closed = False
        self._ring = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._pump: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._gone = False
        self._trail: EventIds | None = None

    def follow(self, trail: EventIds) -> None:
        """Name the events from here on."""
        self._trail = trail

    def watch_disconnect(self, on_gone: OnGone | None = None) -> None:
        """This may take a while; `on_gone` is awaited once if the client goes away meanwhile."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(LINGER_S, self._lingering, on_gone)

    def stream(self) -> None:
        """Answer with events, however quick the answer is."""
        self._streaming = True

    def push(self, message: bytes) -> None:
        self._events.append(event(message, self._trail.here() if self._trail else ""))
        self.begin()

    async def finish(self, status: int, body: bytes, headers: tuple[Header, ...] = ()) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            await self._stop_watching(self._watcher)
        if not self._streaming:
            await respond(self._send, status, body, headers)
            return
        self._events.append(event(body))
        await self.end()

    async def end(self) -> None:
        """End the stream with what was pushed."""
        await self._settle()
        self._closed = True
        self._ring.set()
        await (self._pump or self._flow())

    async def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            await self._stop_watching(self._watcher)

    async def _stop_watching(self, watcher: asyncio.Task[None]) -> None:
        # What was begun because the client went away is carried through.
        if not self._gone:
            watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher

    def _lingering(self, on_gone: OnGone | None) -> None:
        loop = asyncio.get_running_loop()
        after_s = NAMED_AFTER_S if self._trail else STREAM_AFTER_S
        self._timer = loop.call_later(after_s - LINGER_S, self.begin)
        if on_gone is not None:
            self._watcher = loop.create_task(self._watch(on_gone), name="watch the client")

    async def _watch(self, on_gone: OnGone) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        await on_gone()

    def begin(self) -> None:
        """Let the client see at once that there is a stream, before its first event."""
        self._streaming = True
        self._ring.set()
        if self._pump is None:
            self._pump = asyncio.get_running_loop().create_task(self._flow(), name="stream")

    async def _flow(self) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        if self._trail is not None:
            self._events.insert(0, _priming(self._trail))
        while True:
            events, self._events = self._events, []
            closed = self._closed
            body = {"type": "http.response.body", "body": b"".join(events)}
            await self._send({**body, "more_body": not closed})
            if closed:
                return
            await self._next()

    async def _next(self) -> None:
        try:
            async with asyncio.timeout(PING_S):
                await self._ring.wait()
        except TimeoutError:
            self._events.append(_PING)
        self._ring.clear()


class ProgressRelay:
    """Passes on what a server says of how far it is; only ever forward, as MCP demands."""

    def __init__(self, reply: ReplyStream, token: str | int, *, last: float | None = None) -> None:
        self._reply = reply
        self._token = token
        # None: nothing was said yet.
        self.last = last

    def step(self, step: ProgressStep) -> None:
        progress = (self.last or 0.0) + TINY if step.progress is None else step.progress
        if self.last is not None and progress <= self.last:
            return
        self.last = progress
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress}
        if step.progress is not None and step.total is not None:
            params["total"] = step.total
        if step.message:
            params["message"] = step.message
        notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        self._reply.push(orjson.dumps(notification))


def progress_of(reply: ReplyStream, token: object) -> ProgressRelay | None:
    """The progress relay of a request that has a progress token: its reply is a stream."""
    if (known := token_of(token)) is None:
        return None
    reply.stream()
    return ProgressRelay(reply, known)


def token_of(token: object) -> str | int | None:
    """None for what is none."""
    return None if isinstance(token, bool) or not isinstance(token, str | int) else token
