"""So many connections of agents at once in one process: one more is answered with 503 at once, and
those that are served stay as quick as they were."""

from __future__ import annotations

import asyncio
import re
import resource
from contextlib import suppress
from typing import Any

from django.conf import settings

from core import figures
from gateway.protocol.errors import too_many_connections

# For the database, tool servers, logs and those who are turned away.
OTHER_FILES = 512
# A head as clients send it: more of one is not waited for.
HEAD_MAX = 64 * 1024
# Closed at once, it might be reset before its client has read why.
READ_WITHIN_S = 1.0
_for_agents = re.compile(rb"(?:POST|GET|DELETE) /mcp/").match


def raise_file_limit() -> None:
    """Lets this process open as many files as the system allows; many begin with 1,024."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections_max() -> int:
    """The setting, and never more than this process may have files open."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return settings.CONNECTIONS
    return min(settings.CONNECTIONS, max(1, soft - OTHER_FILES))


class SurplusConnection(asyncio.Protocol):
    """Reads one head. An agent's request is answered with 503; probes and figures, which are needed
    most now, go on to `served`, for this request alone."""

    def __init__(self, served: Any, transport: asyncio.Transport) -> None:
        self._served, self._transport = served, transport
        self._head = b""
        self._is_answered = False
        loop = asyncio.get_running_loop()
        self._end = loop.call_later(settings.HEAD_WITHIN_S, transport.close)

    def data_received(self, data: bytes) -> None:
        if self._is_answered:
            return
        self._head += data
        if b"\r\n\r\n" in self._head or len(self._head) > HEAD_MAX:
            self._end.cancel()
            self._decide()

    def connection_lost(self, error: Exception | None) -> None:
        self._end.cancel()

    def _decide(self) -> None:
        if not _for_agents(self._head):
            self._transport.set_protocol(self._served)
            self._served.serve(self._transport, once=True)
            self._served.data_received(self._head)
            return
        self._is_answered = True
        figures.refused[503] += 1
        self._transport.write(_answer())
        self._end = asyncio.get_running_loop().call_later(READ_WITHIN_S, self._transport.close)


def _answer() -> bytes:
    error = too_many_connections()
    body = error.body()
    lines = [b"HTTP/1.1 503 Service Unavailable", b"content-type: application/json"]
    lines += [b"content-length: %d" % len(body), b"cache-control: no-store"]
    lines += [b"%b: %b" % line for line in error.headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
