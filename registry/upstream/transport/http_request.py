"""One HTTP request to a server and the one reply to it, as JSON or as a stream of events."""

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from yarl import URL

from core.connection_pool import (
    Arrived,
    ConnectionPool,
    HttpOrigin,
    StaleConnection,
)
from core.http_connection import BadHttp, ConnectionCut, Fields, ReadTimeout
from core.http_head import request_head
from core.kept_english import gettext as _
from core.outbound import AddressRefused
from core.system_errors import describe, describe_certificate
from registry.upstream import wire
from registry.upstream.transport.event_stream import EventStream
from registry.upstream.transport.pausable_timeout import PausableTimeout
from registry.upstream.transport.thinning import FEW
from registry.upstream.values import (
    Limits,
    Lost,
    NotSent,
    ProtocolError,
    ResultTooLarge,
    TimedOut,
    UpstreamError,
    describe_overrun,
    describe_silence,
    describe_size,
)
from registry.upstream.wire import WireMessage

# What a server says beside an error status is read this far.
_ERROR_BYTES = 64 * 1024
# An event stream whose reply has come is usually ended by the server at once.
_DRAIN_S = 1.0
_STALE_TIMES = 200
_RESUME_TIMES = 20
# So much of a stream of events is read before others have their turn.
_AT_ONCE = 64 * 1024
_RESUME_WAIT_S = 10.0
# Whatever becomes of a connection, and time running out.
_FAILURES = (OSError,)
# Source: RFC 9110, 5.6.2.
_is_name = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_BREAK = re.compile(r"[\r\n\0]")


class BadStatus(Exception):
    """An answer with a status other than 200; what it means depends on the revision."""

    def __init__(
        self, status: int, message: WireMessage | None = None, challenge: str = ""
    ) -> None:
        super().__init__(status)
        self.status = status
        self.message = message
        # Its WWW-Authenticate.
        self.challenge = challenge


@dataclass(slots=True)
class HttpRequest:
    """One request. `left` says afterwards whether any of it can have reached the server."""

    id: int
    origin: HttpOrigin
    # Without the length of the body, and without the empty line.
    head: bytes
    body: bytes
    limits: Limits
    # Takes the notifications and requests that come before the reply.
    hear: Callable[[WireMessage], None] | None = None
    # How to take up an ended stream again, where the revision has that: the head for an event id.
    resume: Callable[[str], bytes] | None = None
    session: str = ""
    left: bool = False
    # Answers to the server's own requests, on their way.
    errands: list[asyncio.Task[None]] = field(default_factory=list)
    clock: PausableTimeout = field(init=False)
    # Set once the server began to answer.
    opened: asyncio.Event | None = None
    # Its method has no body, and so no length of one.
    is_bare: bool = False

    def __post_init__(self) -> None:
        self.clock = PausableTimeout(self.limits.idle_s)


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """An answer of any status and content."""

    status: int
    headers: Fields
    body: bytes


def head(method: str, url: URL, headers: Mapping[str, str]) -> bytes:
    """Request line and headers as bytes."""
    return head_of(method, url.raw_path_qs, url, headers)


def head_of(method: str, target: str, url: URL, headers: Mapping[str, str]) -> bytes:
    """The same, of a target that is none of a URL: `url` says the host. Raises NotSent."""
    try:
        return request_head(method, target, url) + fields(headers)
    except AddressRefused as error:
        raise NotSent(str(error), status=400) from error


def fields(headers: Mapping[str, str]) -> bytes:
    """Further header lines of a request. Raises NotSent."""
    if odd := next((name for name in headers if not _is_name(name)), None):
        raise NotSent(_("“%s” is no name of a header.") % odd[:100], status=400)
    if any(_BREAK.search(name + value) for name, value in headers.items()):
        raise NotSent(_("A header of the request holds a line break."))
    return "".join(f"\r\n{name}: {value}" for name, value in headers.items()).encode()


async def exchange(pool: ConnectionPool, request: HttpRequest) -> WireMessage:
    """The reply to this request. Raises BadStatus, or the error that says whether it was sent."""
    try:
        async with asyncio.timeout(request.limits.total_s) as request.clock.timeout:
            arrived = await _send(pool, request)
            request.clock.on(arrived.allow_silence)
            if request.opened is not None and arrived.status == 200:
                request.opened.set()
            try:
                return await _reply(pool, arrived, request)
            except BaseException:
                # Closing the stream is also how 2026-07-28 cancels a call.
                arrived.close()
                raise
            finally:
                request.clock.over()
    except _FAILURES as error:
        raise _failure(error, request) from error


async def exchange_plainly(pool: ConnectionPool, request: HttpRequest) -> PlainAnswer:
    """The answer to this request, whatever it is. Raises the error that says whether it was
    sent."""
    try:
        async with asyncio.timeout(request.limits.total_s):
            arrived = await _send(pool, request)
            try:
                body = await _content(arrived, request.limits.max_bytes)
            except BaseException:
                arrived.close()
                raise
            answer = PlainAnswer(arrived.status, arrived.headers, body)
            arrived.release()
            return answer
    except _FAILURES as error:
        raise _failure(error, request) from error


async def overhear(pool: ConnectionPool, request: HttpRequest) -> None:
    """A stream that brings no reply, until it ends."""
    assert request.hear is not None
    try:
        async with asyncio.timeout(request.limits.total_s):
            arrived = await _send(pool, request)
            try:
                if arrived.status != 200 or _kind(arrived) != "text/event-stream":
                    raise BadStatus(arrived.status)
                if request.opened is not None:
                    request.opened.set()
                await _reply_in(arrived, EventStream(request.limits.max_bytes), request)
            finally:
                arrived.close()
    except _FAILURES as error:
        raise _failure(error, request) from error


async def deliver(pool: ConnectionPool, request: HttpRequest) -> int:
    """Send what has no reply (a notification, an answer); the status is all that comes back."""
    try:
        async with asyncio.timeout(request.limits.total_s):
            arrived = await _send(pool, request)
            await _finish(arrived)
            return arrived.status
    except _FAILURES as error:
        raise _failure(error, request) from error


async def _send(pool: ConnectionPool, request: HttpRequest) -> Arrived:
    length = b"" if request.is_bare else b"\r\nContent-Length: %d" % len(request.body)
    data = request.head + length + b"\r\n\r\n" + request.body
    for _attempt in range(_STALE_TIMES):
        connection = await pool.connect(request.origin, request.limits)
        if not connection.is_usable:
            # Closed while it was kept. There may be others like it in the pool, and then a new one.
            connection.close()
            continue
        request.left = True
        try:
            await connection.ask(data, request.limits.idle_s)
        except BaseException:
            connection.close()
            raise
        return connection
    raise StaleConnection("The server closes each connection at once")


async def _finish(arrived: Arrived) -> None:
    """Read what should be nothing or little, so that the connection can be used again."""
    try:
        with contextlib.suppress(*_FAILURES):
            async with asyncio.timeout(_DRAIN_S):
                await arrived.content.readany()
    finally:
        # Closes the connection instead, if the end has not come.
        arrived.release()


async def _reply(pool: ConnectionPool, arrived: Arrived, request: HttpRequest) -> WireMessage:
    request.session = arrived.headers.get(b"mcp-session-id", "")
    if arrived.status != 200:
        message = None
        # The status says enough, whatever became of the explanation.
        with contextlib.suppress(UpstreamError, *_FAILURES):
            message = await _explanation(arrived)
        raise BadStatus(arrived.status, message, arrived.headers.get(b"www-authenticate"))
    kind = _kind(arrived)
    if kind == "application/json":
        message = wire.read(await _content(arrived, request.limits.max_bytes))
        arrived.release()
        return _for(request, message)
    if kind == "text/event-stream":
        return await _follow(pool, arrived, request)
    raise ProtocolError(
        _("The server answered with “%s” instead of JSON or an event stream.") % kind[:60]
    )


def _kind(arrived: Arrived) -> str:
    if arrived.headers.get(b"content-encoding", "identity") != "identity":
        raise ProtocolError(_("The server sent a compressed reply, though it was asked not to."))
    return arrived.headers.get(b"content-type", "").partition(";")[0].strip().lower()


async def _explanation(arrived: Arrived) -> WireMessage | None:
    if _kind(arrived) != "application/json":
        return None
    return wire.read(await _content(arrived, _ERROR_BYTES))


async def _content(arrived: Arrived, limit: int) -> bytes:
    if int(arrived.headers.get(b"content-length", "0")) > limit:
        raise ResultTooLarge(describe_size(limit))
    chunk = await arrived.content.readany()
    if arrived.content.at_eof():
        pieces = [chunk]
    else:
        pieces = await _pieces(arrived, chunk, limit)
    if sum(map(len, pieces)) > limit:
        raise ResultTooLarge(describe_size(limit))
    return b"".join(pieces)


async def _pieces(arrived: Arrived, chunk: bytes, limit: int) -> list[bytes]:
    """All chunks, or as many as show that the limit is passed."""
    pieces, size = [chunk], len(chunk)
    while size <= limit and (chunk := await arrived.content.readany()):
        pieces.append(chunk)
        size += len(chunk)
    return pieces


def _for(request: HttpRequest, message: WireMessage) -> WireMessage:
    """The message, if it is the reply to this very request. An error may be about no id at all."""
    if not message.is_response:
        raise ProtocolError(_("The server answered with a %s of its own.") % message.method[:60])
    if message.id != request.id and not (message.id is None and message.error):
        raise ProtocolError(
            _("The server answered another call than was asked (id %s).") % f"{message.id!r:.60}"
        )
    return message


async def _follow(pool: ConnectionPool, arrived: Arrived, request: HttpRequest) -> WireMessage:
    """The reply from an event stream; what comes before it is heard."""
    events = EventStream(request.limits.max_bytes)
    if message := await _reply_in(arrived, events, request):
        if arrived.content.at_eof():
            arrived.release()
        else:
            pool.spawn(_finish(arrived))
        return message
    arrived.close()
    if request.resume is not None and events.last_id:
        return await _resume(pool, events, request)
    raise Lost(_("The server ended its stream before the reply."))


async def _resume(pool: ConnectionPool, events: EventStream, request: HttpRequest) -> WireMessage:
    """Source: MCP 2025-11-25, basic/transports: a server may close a stream and be polled."""
    assert request.resume is not None
    for _attempt in range(_RESUME_TIMES):
        await asyncio.sleep(min(events.retry_ms / 1000, _RESUME_WAIT_S))
        again = HttpRequest(
            request.id, request.origin, request.resume(events.last_id), b"", request.limits
        )
        arrived = await _send(pool, again)
        request.clock.on(arrived.allow_silence)
        try:
            if arrived.status != 200 or _kind(arrived) != "text/event-stream":
                break
            events.begin_again()
            if message := await _reply_in(arrived, events, request):
                return message
        finally:
            arrived.close()
    raise Lost(_("The server ended its stream before the reply, and does not continue it."))


async def _reply_in(
    arrived: Arrived, events: EventStream, request: HttpRequest
) -> WireMessage | None:
    """The reply, or nothing where the stream ends but could be taken up again."""
    try:
        while chunk := await arrived.content.readany():
            for start in range(0, len(chunk), _AT_ONCE):
                came = events.feed(chunk[start : start + _AT_ONCE])
                if len(came) > FEW:
                    came = events.thinned(came)
                    # Others' calls go on, however much of this one's is there already.
                    await asyncio.sleep(0)
                for data in came:
                    message = wire.read(data)
                    if message.is_response:
                        return _for(request, message)
                    if request.hear:
                        request.hear(message)
    except ConnectionCut:
        if request.resume is None or not events.last_id:
            raise
    return None


_COULD_NOT_BE_REACHED = _("%(host)s could not be reached: %(why)s.")


def _failure(error: Exception, request: HttpRequest) -> UpstreamError:
    if not request.left:
        return NotSent(_not_reached(error, request))
    if isinstance(error, ReadTimeout):
        return TimedOut(describe_silence(request.limits.idle_s), "idle")
    # With a number it is the network's, of a connection that broke.
    if isinstance(error, TimeoutError) and error.errno is None:
        return TimedOut(describe_overrun(request.limits.total_s), "total")
    if isinstance(error, BadHttp):
        return ProtocolError(_("The server's answer is not HTTP that can be read."))
    return Lost(_("The connection broke before the reply."))


def _not_reached(error: Exception, request: HttpRequest) -> str:
    where = request.origin.host
    match error:
        case AddressRefused():
            return str(error)
        case socket.gaierror():
            return _("The name %(host)s was not found.") % {"host": where}
        case ssl.SSLCertVerificationError():
            said = _("The certificate of %(host)s is not valid: %(why)s.")
            return said % {"host": where, "why": describe_certificate(error)}
        case TimeoutError():
            said = _("%(host)s did not take the connection within %(seconds)s seconds.")
            return said % {"host": where, "seconds": f"{request.limits.connect_s:g}"}
        case OSError(errno=int(number)) if not isinstance(error, ssl.SSLError):
            # The system's word: what asyncio says of it names a tuple.
            return _COULD_NOT_BE_REACHED % {"host": where, "why": describe(number)}
    return _COULD_NOT_BE_REACHED % {"host": where, "why": error or type(error).__name__}
