"""One HTTP/1.1 connection to a server: one request at a time, and the response while it comes."""

from __future__ import annotations

import asyncio
import select
from typing import Protocol, cast

import httptools

# Of a head, of trailers, of whatever comes that is no body.
_HEAD_BYTES = 16 * 1024
_FIELDS = 100
# So much of a body may wait to be read.
_UNREAD_BYTES = 256 * 1024
_HUNG_UP = getattr(select, "POLLRDHUP", 0)
_NO_BODY = (204, 304)


class BadHttp(ConnectionError):
    """The server's bytes are no valid HTTP."""


class ConnectionCut(ConnectionError):
    """The connection ended before the response did."""


class ReadTimeout(TimeoutError):
    """Nothing came for too long."""


class Fields:
    """Fields of a response's head; of several with one name, the first."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}

    def get(self, name: bytes, default: str = "") -> str:
        """`name` in small letters."""
        value = self.values.get(name)
        return default if value is None else value.decode("latin-1")


class ConnectionOwner(Protocol):
    def add(self, connection: HttpConnection) -> None: ...

    def keep(self, connection: HttpConnection) -> None: ...

    def forget(self, connection: HttpConnection) -> None: ...


class HttpConnection(asyncio.Protocol):
    """`ask` writes a request in one piece and returns with the response's head; `readany` gives
    the body piece by piece. Neither waits for longer than `idle_s` without a byte.

    No task and no timer for each request: a response that comes in one piece costs one future.
    """

    __slots__ = (
        *("_asked", "_beyond", "_count", "_deadline", "_dry", "_ended", "_error", "_head"),
        *("_idle_s", "_keep", "_keeper", "_loop", "_parser", "_paused", "_pieces", "_poll"),
        *("_timer", "_timer_at", "_to_end", "_transport", "_unread", "_waiter"),
        *("free_since", "headers", "status"),
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, keeper: ConnectionOwner) -> None:
        self._loop = loop
        self._keeper = keeper
        # None once the connection is lost.
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._poll = select.poll()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._waiter: asyncio.Future[None] | None = None
        self._pieces: list[bytes] = []
        self._error: Exception | None = None
        self._paused = self._asked = self._beyond = False
        self.free_since = 0.0
        self._begin(0)

    def _begin(self, idle_s: float) -> None:
        self._idle_s, self._deadline = idle_s, 0.0
        self.status, self.headers = 0, Fields()
        self._head = self._ended = self._to_end = self._keep = False
        self._count = self._dry = self._unread = 0
        self._pieces.clear()

    # Asking.

    @property
    def peer(self) -> str:
        """The address of who is connected to."""
        return str(self._transport.get_extra_info("peername")[0])

    @property
    def is_usable(self) -> bool:
        """Whether the peer has not hung up, as far as is known here."""
        if self._parser is None or self._beyond or self._transport.is_closing():
            return False
        # The server's end may have come while this loop was busy, and not been looked at yet. Found
        # out now, it is certain that the call was not taken; found out later, it is not.
        return not self._poll.poll(0)

    async def ask(self, data: bytes, idle_s: float) -> None:
        self._begin(idle_s)
        self._asked = True
        self._transport.write(data)
        while not self._head:
            await self._more()

    @property
    def content(self) -> HttpConnection:
        return self

    async def readany(self) -> bytes:
        """The bytes of the body that arrived since the last read; b"" at its end."""
        while not self._pieces and not self._ended:
            await self._more()
        piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._unread = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return piece

    def at_eof(self) -> bool:
        return self._ended and not self._pieces

    def allow_silence(self, seconds: float | None) -> None:
        """Sets the idle timeout from now on, in seconds; None: no timeout."""
        self._idle_s = float("inf") if seconds is None else seconds
        self._alive()
        if self._waiter is not None:
            self._set_timer()

    def release(self) -> None:
        """Keep it for the next request, unless there is more to come on it."""
        if not self._ended or not self._keep or self._beyond or self._transport.is_closing():
            self.close()
            return
        # Until then, nothing should come.
        self._asked = False
        self.free_since = self._loop.time()
        self._keeper.keep(self)

    def close(self) -> None:
        self._stop_timer()
        self._transport.close()

    def abort(self) -> None:
        self._stop_timer()
        self._transport.abort()

    # Waiting.

    def _more(self) -> asyncio.Future[None]:
        """Waits for more bytes. Only one caller waits at a time."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        self._alive()
        if self._timer is None or self._timer_at > self._deadline:
            self._set_timer()
        return self._waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._keep = False
        if self._error is None:
            self._error = error
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(self._error)

    def _alive(self) -> None:
        self._deadline = self._loop.time() + self._idle_s

    def _set_timer(self) -> None:
        self._stop_timer()
        if self._deadline == float("inf"):
            return
        self._timer_at = self._deadline
        self._timer = self._loop.call_at(self._deadline, self._look)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Rings at what was the deadline when it was set: it may have moved many times since."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() < self._deadline:
            self._set_timer()
        else:
            self._fail(ReadTimeout())

    # What comes from the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), _HUNG_UP)
        self._keeper.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._asked or self._ended:
            # Nobody asked for this: whatever it is, it must not answer the next request.
            self._beyond = True
            self._transport.close()
            return
        assert self._parser is not None
        self._alive()
        self._dry += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # Also for what stands after the end of a last response.
            self._beyond = True
            if not self._ended:
                self._fail(BadHttp(str(error)))
        if self._dry > _HEAD_BYTES:
            self._fail(BadHttp("The head of the response is too long."))
        if self._head:
            self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_timer()
        if self._to_end and error is None:
            self._ended = True
            self._wake()
        elif not self._ended:
            self._fail(error or ConnectionCut())
        self._keep = False
        # It holds our methods, and we hold it.
        self._parser = None
        self._keeper.forget(self)

    # What the parser finds.

    def on_message_begin(self) -> None:
        if self._ended:
            self._beyond = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head:
            return
        self.headers.values.setdefault(name.lower(), value)
        self._count += 1
        if self._count > _FIELDS:
            self._fail(BadHttp("The head of the response has too many fields."))

    def on_headers_complete(self) -> None:
        if self._ended:
            return
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            # "Continue" and the like: the response is yet to come.
            self.headers.values.clear()
            return
        coding = self.headers.values.get(b"transfer-encoding")
        if coding is not None and coding.strip().lower() != b"chunked":
            self._fail(BadHttp("The response is coded for transfer in a way that was not offered."))
            return
        self.status, self._head = status, True
        self._keep = self._parser.should_keep_alive()
        has_length = coding is not None or b"content-length" in self.headers.values
        self._to_end = not has_length and status not in _NO_BODY

    def on_body(self, data: bytes) -> None:
        if self._ended:
            return
        self._dry = 0
        self._pieces.append(data)
        self._unread += len(data)
        if self._unread > _UNREAD_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._head:
            self._ended = True
