"""One HTTP request to a server and the one reply to it, as JSON or as a stream of events."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from multidict import CIMultiDict
from yarl import URL

from core.outbound import Refused
from registry.upstream import wire
from registry.upstream.eventstream import EventStream
from registry.upstream.links import Links
from registry.upstream.values import (
    Limits,
    Lost,
    Nonsense,
    NotSent,
    TimedOut,
    TooLarge,
    UpstreamError,
)
from registry.upstream.wire import Message

# What a server says beside an error status is read this far.
_ERROR_BYTES = 64 * 1024
# An event stream whose reply has come is usually ended by the server at once.
_DRAIN_S = 1.0
_RESUME_TIMES = 20
_RESUME_WAIT_S = 10.0
_FAILURES = (aiohttp.ClientError, TimeoutError, OSError, ValueError)

log = logging.getLogger(__name__)


class BadStatus(Exception):
    """An answer with a status other than 200; what it means depends on the revision."""

    def __init__(self, status: int, message: Message | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.message = message


class _Body(Payload):
    """Knows whether any of the request can have left: headers wait in the buffer for the body."""

    _autoclose = True
    _headers: CIMultiDict[str] = CIMultiDict({"Content-Type": "application/json"})

    def __init__(self, data: bytes) -> None:
        # Not the parent's, which would build headers anew for each request.
        self._value = data
        self._size = len(data)
        self.left = False

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        if writer.transport is None or writer.transport.is_closing():
            raise aiohttp.ClientConnectionResetError("closed before the request was written")
        self.left = True
        await writer.write(self._value)

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        await self.write(writer)


@dataclass(slots=True)
class Order:
    id: int
    url: URL
    headers: CIMultiDict[str]
    body: bytes
    limits: Limits
    # Takes the notifications and requests that come before the reply.
    hear: Callable[[Message], None] | None = None
    # Headers for taking up an ended stream again, where the revision has that.
    resume: CIMultiDict[str] | None = None
    left: bool = False
    session: str = ""


async def exchange(links: Links, order: Order) -> Message:
    """The reply to this order. Raises BadStatus, or the error that says whether it was sent."""
    try:
        return await _exchange(links, order)
    except _FAILURES as error:
        if not _closed_before_writing(error, order):
            raise _failure(error, order) from error
    # A kept connection closed under our hands before a byte was written: a new one will do.
    try:
        return await _exchange(links, order)
    except _FAILURES as error:
        raise _failure(error, order) from error


async def deliver(links: Links, order: Order) -> int:
    """Send what has no reply (a notification, an answer); the status is all that comes back."""
    try:
        async with await _post(links, order) as response:
            return response.status
    except _FAILURES as error:
        raise _failure(error, order) from error


async def end(links: Links, order: Order) -> None:
    """Tell a server that a session is over."""
    try:
        async with links.http.delete(
            order.url, headers=order.headers, allow_redirects=False, timeout=_timeout(order.limits)
        ):
            return
    except _FAILURES:
        log.info("a session was not ended: %s did not answer", order.url.host)


async def _post(links: Links, order: Order) -> aiohttp.ClientResponse:
    body = _Body(order.body)
    try:
        return await links.http.post(
            order.url,
            data=body,
            headers=order.headers,
            allow_redirects=False,
            timeout=_timeout(order.limits),
        )
    finally:
        order.left = body.left


async def _exchange(links: Links, order: Order) -> Message:
    response = await _post(links, order)
    try:
        return await _reply(links, response, order)
    except BaseException:
        # Closing the stream is also how 2026-07-28 cancels a call.
        response.close()
        raise


async def _reply(links: Links, response: aiohttp.ClientResponse, order: Order) -> Message:
    headers = response.headers
    if headers.get("Content-Encoding", "identity") != "identity":
        raise Nonsense("The server sent a compressed reply, though it was asked not to.")
    order.session = headers.get("Mcp-Session-Id", "")
    if response.status != 200:
        raise BadStatus(response.status, await _said_with_error(response))
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return _for(order, wire.read(await _content(response, order.limits.max_bytes)))
    if kind == "text/event-stream":
        return await _follow(links, response, order)
    raise Nonsense(f"The server answered with “{kind[:60]}” instead of JSON or an event stream.")


async def _content(response: aiohttp.ClientResponse, limit: int) -> bytes:
    if (response.content_length or 0) > limit:
        raise TooLarge(f"The server's reply is larger than {limit} bytes.")
    chunk = await response.content.readany()
    if response.content.at_eof():
        pieces = [chunk]
    else:
        pieces = await _pieces(response, chunk, limit)
    if sum(map(len, pieces)) > limit:
        raise TooLarge(f"The server's reply is larger than {limit} bytes.")
    return b"".join(pieces)


async def _pieces(response: aiohttp.ClientResponse, chunk: bytes, limit: int) -> list[bytes]:
    """All chunks, or as many as show that the limit is passed."""
    pieces, size = [chunk], len(chunk)
    while size <= limit and (chunk := await response.content.readany()):
        pieces.append(chunk)
        size += len(chunk)
    return pieces


def _for(order: Order, message: Message) -> Message:
    """The message, if it is the reply to this very order. An error may be about no id at all."""
    if not message.is_response:
        raise Nonsense(f"The server answered with a {message.method[:60]} of its own.")
    if message.id != order.id and not (message.id is None and message.error):
        raise Nonsense(f"The server answered another call than was asked (id {message.id!r:.60}).")
    return message


async def _said_with_error(response: aiohttp.ClientResponse) -> Message | None:
    try:
        return wire.read(await _content(response, _ERROR_BYTES))
    except (Nonsense, TooLarge):
        response.close()
        return None


async def _follow(links: Links, response: aiohttp.ClientResponse, order: Order) -> Message:
    """The reply from an event stream; what comes before it is heard."""
    events = EventStream(order.limits.max_bytes)
    began = asyncio.get_running_loop().time()
    if message := await _reply_in(response, events, order):
        links.spawn(_drain(response))
        return message
    if order.resume is not None and events.last_id:
        async with asyncio.timeout_at(began + order.limits.total_s):
            return await _resume(links, events, order)
    raise Lost("The server ended its stream before the reply.")


async def _resume(links: Links, events: EventStream, order: Order) -> Message:
    """Source: MCP 2025-11-25, basic/transports: a server may close a stream and be polled."""
    for _ in range(_RESUME_TIMES):
        await asyncio.sleep(min(events.retry_ms / 1000, _RESUME_WAIT_S))
        headers = CIMultiDict(order.resume or {})
        headers["Accept"] = "text/event-stream"
        headers["Last-Event-ID"] = events.last_id
        async with links.http.get(
            order.url, headers=headers, allow_redirects=False, timeout=_timeout(order.limits)
        ) as response:
            if response.status != 200 or response.content_type != "text/event-stream":
                break
            events.begin_again()
            if message := await _reply_in(response, events, order):
                return message
    raise Lost("The server ended its stream before the reply, and does not continue it.")


async def _reply_in(
    response: aiohttp.ClientResponse, events: EventStream, order: Order
) -> Message | None:
    """The reply, or nothing where the stream ends but could be taken up again."""
    try:
        while chunk := await response.content.readany():
            for data in events.feed(chunk):
                message = wire.read(data)
                if message.is_response:
                    return _for(order, message)
                if order.hear:
                    order.hear(message)
    except aiohttp.ClientPayloadError:
        if order.resume is None or not events.last_id:
            raise
    return None


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read to the end that should follow at once, so that the connection can be used again."""
    try:
        with contextlib.suppress(*_FAILURES):
            async with asyncio.timeout(_DRAIN_S):
                await response.content.readany()
    finally:
        # Closes the connection instead, if the end has not come.
        response.release()


def _closed_before_writing(error: BaseException, order: Order) -> bool:
    if order.left or isinstance(error, aiohttp.ClientConnectorError | TimeoutError):
        return False
    return isinstance(error, aiohttp.ClientConnectionError)


def _failure(error: Exception, order: Order) -> UpstreamError:
    if not order.left:
        return NotSent(_not_reached(error, order))
    if isinstance(error, aiohttp.SocketTimeoutError):
        return TimedOut(f"The server was silent for {order.limits.idle_s:g} seconds.", "idle")
    if isinstance(error, TimeoutError):
        return TimedOut(f"The call took longer than {order.limits.total_s:g} seconds.", "total")
    if isinstance(error, aiohttp.ClientResponseError):
        return Nonsense("The server's answer is not HTTP that can be read.")
    return Lost("The connection broke before the reply.")


def _not_reached(error: Exception, order: Order) -> str:
    where = order.url.host or ""
    match error:
        case aiohttp.ClientConnectorError(os_error=Refused() as refused):
            return str(refused)
        case aiohttp.ClientConnectorDNSError():
            return f"The name {where} was not found."
        case aiohttp.ClientConnectorCertificateError():
            return f"The certificate of {where} is not valid: {error.certificate_error}."
        case aiohttp.ClientConnectorError():
            return f"{where} could not be reached: {error.os_error.strerror or error.os_error}."
        case TimeoutError():
            return f"{where} did not take the connection within {order.limits.connect_s:g} seconds."
        case aiohttp.InvalidURL() | ValueError():
            return "The server's URL or one of its headers cannot be used in HTTP."
    return f"{where} could not be reached: {error or type(error).__name__}."


@lru_cache(maxsize=256)
def _timeout(limits: Limits) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=limits.total_s, connect=limits.connect_s, sock_read=limits.idle_s
    )
