"""One stream of a server of 2024-11-05: what it says comes there, what is said to it is posted.

Source: MCP 2024-11-05, basic/transports, "HTTP with SSE". The conversation is the same as with a
process on stdio, over other pipes.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Any

from yarl import URL

from core.connection_pool import (
    Arrived,
    ConnectionPool,
    HttpOrigin,
    StaleConnection,
    Transmission,
)
from core.kept_english import gettext as _
from core.outbound import AddressRefused
from registry.upstream.session.http_statuses import refusal
from registry.upstream.transport.event_stream import EventStream
from registry.upstream.transport.http_request import BadStatus, HttpRequest, deliver, head
from registry.upstream.transport.process import ServerProcess, Tail
from registry.upstream.transport.thinning import FEW, thinned
from registry.upstream.values import (
    Limits,
    Lost,
    NotGreeted,
    NotSent,
    ResultTooLarge,
    UnclearStatus,
    UpstreamError,
)

# Until the stream is there and has named its address for posting.
_OPEN = Limits(connect_s=5, total_s=10)
# A server may answer a post at once or when it is done; the reply comes on the stream anyhow.
_POST = Limits(connect_s=5, idle_s=120, total_s=120)
# A stream may be silent for as long as nobody asks; nobody who asks for so long keeps it open.
_SILENT_S = 24 * 3600.0
_UNUSED_S = 300.0
_LOOK_S = 30.0
# The server may no longer know this stream's session: the next call opens another. Its revision
# has no word for that, so that what was posted may have been taken.
FORGOTTEN = {400, 404, 410}
_STALE_TIMES = 20
_FAILURES = (OSError,)
_ID = re.compile(rb'"id":(\d{1,15})')


class _Events(EventStream):
    """An event stream that reads the endpoint's address, with a limit for each event."""

    endpoint = ""

    def _event(self) -> bytes | None:
        if self._kind == b"endpoint" and not self.endpoint:
            self.endpoint = b"".join(self._data).decode(errors="replace")
        self._taken = 0
        return super()._event()


class Stream(ServerProcess):
    def __init__(
        self, pool: ConnectionPool, url: URL, headers: Mapping[str, str], stderr: Tail
    ) -> None:
        super().__init__(stderr)
        self._pool = pool
        self._url = url
        self._headers = headers
        self._events = _Events(self._lines.limit)
        self._endpoint: asyncio.Future[URL] = self._loop.create_future()
        self._origin: HttpOrigin | None = None
        self._reader: asyncio.Task[None] | None = None
        self._posts: set[asyncio.Task[None]] = set()
        self._used_at = self._loop.time()
        self._look: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls, pool: ConnectionPool, url: URL, headers: Mapping[str, str], stderr: Tail
    ) -> "Stream":
        """Raises NotGreeted, with the status, where there is no such stream; NotSent where nobody
        could be asked."""
        stream = cls(pool, url, headers, stderr)
        try:
            async with asyncio.timeout(_OPEN.total_s):
                arrived = await stream._get()
                stream._reader = asyncio.create_task(stream._read(arrived))
                endpoint = await stream._endpoint
        except BaseException as error:
            await stream.stop()
            if isinstance(error, _FAILURES):
                said = _("%(host)s opened no stream of events: %(why)s.")
                raise NotSent(said % {"host": url.host, "why": _why(error)}) from error
            raise
        stream._origin = pool.origin_of(endpoint)
        stream._url = endpoint
        stream._watch()
        return stream

    async def _get(self) -> Arrived:
        asked = head("GET", self._url, {**self._headers, "Accept": "text/event-stream"})
        arrived = await self._arrived(asked + b"\r\n\r\n")
        kind = arrived.headers.get(b"content-type", "").partition(";")[0].strip().lower()
        plain = arrived.headers.get(b"content-encoding", "identity") == "identity"
        if arrived.status == 200 and kind == "text/event-stream" and plain:
            return arrived
        arrived.close()
        said = f"The server opened no stream of events (HTTP {arrived.status})."
        # Whatever it is, it is not such a server.
        raise NotGreeted(said, status=arrived.status if arrived.status != 200 else 404)

    async def _arrived(self, request: bytes) -> Arrived:
        for _attempt in range(_STALE_TIMES):
            road = Transmission(await self._pool.connect(self._pool.origin_of(self._url), _OPEN))
            try:
                return await road.send(request, _SILENT_S)
            except StaleConnection:
                road.connection.close()
            except BaseException:
                road.connection.close()
                raise
        raise StaleConnection("The server closes each connection at once")

    # What is sent

    def write(self, line: bytes) -> None:
        if self.ended or self._origin is None:
            raise NotSent(_("The server's stream has ended."))
        self._used_at = self._loop.time()
        post = self._loop.create_task(self._post(line), name="post to a stream")
        self._posts.add(post)
        post.add_done_callback(self._posts.discard)

    async def _post(self, line: bytes) -> None:
        try:
            status = await deliver(self._pool, self._request(line))
            if status < 300:
                return
            error = refusal(BadStatus(status), 0)
        except UpstreamError as failed:
            # What was taken is answered on the stream, whatever became of its post.
            if not isinstance(failed, NotSent):
                return
            error = failed
        if isinstance(error, UnclearStatus) and error.status in FORGOTTEN:
            self.ended = True
        self._fail(line, error)

    def _request(self, line: bytes) -> HttpRequest:
        assert self._origin is not None
        lines = head("POST", self._url, self._headers)
        return HttpRequest(id=0, origin=self._origin, head=lines, body=line, limits=_POST)

    def _fail(self, line: bytes, error: UpstreamError) -> None:
        named = _ID.search(line[:64])
        waiting = self._waiting.get(int(named[1])) if named else None
        if waiting and not waiting.reply.done():
            waiting.reply.set_exception(error)

    async def posted(self) -> None:
        """Waits until everything written has been taken, for what must come in order."""
        if self._posts:
            await asyncio.wait(list(self._posts))

    # What comes back

    async def _read(self, arrived: Arrived) -> None:
        try:
            while not self.ended and (chunk := await arrived.content.readany()):
                self._received(chunk)
        except _FAILURES:
            pass
        finally:
            arrived.close()
            self._over("")

    def _received(self, chunk: bytes) -> None:
        self._events._limit = self._lines.limit
        try:
            messages = self._events.feed(chunk)
        except ResultTooLarge as error:
            self.ended = True
            self._fail_all(error)
            return
        if self._events.endpoint and not self._endpoint.done():
            self._settle(self._events.endpoint)
        if len(messages) > FEW:
            messages = thinned(messages)
        for message in messages:
            self._take(message)

    def _settle(self, said: str) -> None:
        """Source: MCP 2024-11-05: the address for posting; anywhere else, our credential would
        be a stranger's."""
        try:
            endpoint = self._pool.guard.check_url(str(self._url.join(URL(said))))
        except (AddressRefused, ValueError) as error:
            self._endpoint.set_exception(
                NotSent(_("The server names no address to post to: %s") % error)
            )
            return
        if endpoint.origin() == self._url.origin():
            self._endpoint.set_result(endpoint)
            return
        told = f"The server wants to be spoken to elsewhere ({endpoint.host}), which is not done."
        self._endpoint.set_exception(NotSent(told))

    # The end

    async def stop(self) -> None:
        self.ended = True
        if self._look:
            self._look.cancel()
        tasks = [task for task in (self._reader, *self._posts) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._over("")

    def _over(self, how: str) -> None:
        self.ended = True
        if not self._endpoint.done():
            ended = NotGreeted(
                "The server ended its stream before it named an address.", status=404
            )
            self._endpoint.set_exception(ended)
        # Nobody may be waiting for it any more.
        with contextlib.suppress(asyncio.CancelledError):
            self._endpoint.exception()
        self._fail_all(Lost(_("The server ended its stream before the reply.")))

    def _watch(self) -> None:
        """Closes a stream that nothing uses after a while."""
        wanted = self.attended or self._waiting
        unused = not wanted and self._loop.time() - self._used_at > _UNUSED_S
        if unused and self._reader:
            self._reader.cancel()
        if not self.ended:
            self._look = self._loop.call_later(_LOOK_S, self._watch)


def _why(error: Any) -> str:
    if isinstance(error, TimeoutError):
        return _("nothing came within %s seconds") % f"{_OPEN.total_s:g}"
    return str(error) or type(error).__name__
