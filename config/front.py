"""uvicorn's HTTP, which knows a request's head again: agents send the same one all day.

A head differs from the one before in the length of the body, and in nothing else. One that was
parsed and taken before is recognised by its digest; its request is handed on in one piece and
answered in one piece, with one write. Everything else goes uvicorn's way: first requests, bodies
that come in parts, pipelined requests, whatever is wrong with one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from hashlib import sha256
from typing import Any

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from config.connection_limit import SurplusConnection, connections_max
from config.requests import with_request_ids
from core import request_ids
from gateway.protocol.header_cache import BODY, KNOWN, HeaderCacheEntry

REMEMBERED = 4096
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
# Of a body that is known to be within every limit.
BODY_MAX = 60_000
_length = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,5})\r\n").search
# Kept nowhere: the digest is of all of the head, and the token is read anew from each.
_token = re.compile(rb"\r\n[Aa]uthorization: ([^\r\n]+)\r\n").search
_VARYING = (b"content-length", b"authorization")
# What comes with another value each time is not worth remembering.
_SPECIAL = (b"transfer-encoding", b"expect", b"upgrade", b"dpop", request_ids.HEADER)
_heads: dict[bytes, tuple[dict[str, Any], HeaderCacheEntry]] = {}


class Front(HttpToolsProtocol):
    """The HTTP protocol of one event loop, in a process that trusts no proxy's headers."""

    # Between two requests: nothing of the next one has come.
    _at_rest = True
    _head_is_whole = False
    # One request, and the connection is closed.
    _serves_once = False
    # Of a head that the client began and has not ended.
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        if len(self.connections) >= connections_max():
            transport.set_protocol(SurplusConnection(self, transport))
        else:
            self.serve(transport)

    def serve(self, transport: Any, *, once: bool = False) -> None:
        self._serves_once = once
        super().connection_made(transport)
        # uvicorn closes a silent connection only after its first answer.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not (self._at_rest and self._is_answered()):
            super().data_received(data)
        else:
            key, token, length, body = _split(data)
            if known := _heads.get(key):
                self._unset_keepalive_if_required()
                if self._head_timer is not None:
                    self._forget_head()
                self._dispatch(
                    known, [(b"content-length", length), (b"authorization", token)], body
                )
                return
            self._learn(data, key)
        self._watch_head()

    def _is_answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch_head(self) -> None:
        """Begin to count when some of a head has come; what is under way is never cut off."""
        waits = self._head_timer is None and not self._head_is_whole and self._is_answered()
        if waits and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(settings.HEAD_WITHIN_S, self._give_up)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        self.transport.write(TOO_SLOW)
        self.transport.close()

    def _dispatch(
        self,
        head: tuple[dict[str, Any], HeaderCacheEntry],
        varying: list[tuple[bytes, bytes]],
        body: bytes,
    ) -> None:
        scope, known = head
        of_this: Any = {
            **scope,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "headers": scope["headers"] + varying,
            "state": {},
            KNOWN: known,
            BODY: body,
        }
        self.scope = of_this
        self.cycle = Cycle(
            scope=of_this,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        # As `make_id` does, without its call.
        self.cycle.request_id = request_ids.FORM % (
            request_ids.PREFIX,
            next(request_ids.NUMBERS),
        )
        super()._start_asgi_task(self.cycle, self.app)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Starts a request that uvicorn parsed, with an id."""
        super()._start_asgi_task(cycle, with_request_ids(app))

    def _learn(self, data: bytes, key: bytes) -> None:
        """Parsed as ever; remembered if it is a request like those that come again and again."""
        super().data_received(data)
        if not key or not self._at_rest or self.transport.is_closing() or settings.ACCESS_LOG:
            return
        if (
            self.scope["method"] != "POST"
            or not self.cycle.keep_alive
            or not _is_plain(self.headers)
        ):
            return
        if len(_heads) >= REMEMBERED:
            _heads.clear()
        scope: dict[str, Any] = {**self.scope}
        scope["headers"] = [line for line in self.headers if line[0] not in _VARYING]
        _heads[key] = (scope, HeaderCacheEntry())

    def on_message_begin(self) -> None:
        self._at_rest = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_is_whole = True
        self._forget_head()
        super().on_headers_complete()
        if self._serves_once:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        self._at_rest = True
        self._head_is_whole = False
        super().on_message_complete()


def _is_plain(lines: list[tuple[bytes, bytes]]) -> bool:
    names = [name for name, _ in lines]
    return all(names.count(name) == 1 for name in _VARYING) and not any(
        name in _SPECIAL or (name == b"connection" and value.lower() != b"keep-alive")
        for name, value in lines
    )


def _split(data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Digest of the head, token, length and body, if this is one whole request; else nothing."""
    end = data.find(b"\r\n\r\n") + 4
    length, token = _length(data, 0, end), _token(data, 0, end)
    if length is None or token is None or not 0 < len(data) - end == int(length[1]) <= BODY_MAX:
        return b"", b"", b"", b""
    digest = sha256(data[: length.start(1)])
    digest.update(data[length.end(1) : end])
    # Two heads that differ in where the length stands are two.
    digest.update(b"%d" % length.start(1))
    return digest.digest(), token[1], length[1], data[end:]


class Cycle(RequestResponseCycle):
    """A known request's cycle; its `send` also takes a whole response at once."""

    request_id = b""

    def run_asgi(self, app: Any) -> Coroutine[Any, Any, None]:
        def run(scope: Any, receive: Any, _send: Any) -> Any:
            request_ids.current.set(self)
            return app(scope, receive, self)

        return super().run_asgi(run)

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"], (request_ids.HEADER, self.request_id)]
            message = {**message, "headers": headers}
        await self.send(message)

    def whole(self, head: bytes, body: bytes) -> bool:
        """Status and fields, without those that the server adds; False where `send` is needed."""
        if self.disconnected or self.response_started or self.flow.write_paused:
            return False
        added = b"".join([b"%b: %b\r\n" % line for line in self.default_headers])
        if not self.keep_alive or b"connection: " in added:
            # This process, or this connection, ends.
            return False
        self.transport.write(
            b"HTTP/1.1 %b%bx-request-id: %b\r\n\r\n%b" % (head, added, self.request_id, body)
        )
        self.response_started = self.response_complete = True
        self.message_event.set()
        self.on_response()
        return True
