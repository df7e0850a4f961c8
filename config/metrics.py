"""`/metrics` in Prometheus' format, behind a token; without one in the settings it is not there.

Answered before any of Django runs, for any Host. What is asked of the database has a deadline, and
is left out where it is not met.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

from config import process_figures, record_figures
from core import figures
from gateway.protocol import reply_stream

PATH = "/metrics"
# More than the database is given, less than Prometheus waits (10 s).
WITHIN_S = 2.5

# Its own: those of pages may all be waiting for the database.
_threads = ThreadPoolExecutor(1, thread_name_prefix="metrics")
ReadRecord = Callable[[list[Metric]], None]


def metrics_first(app: Any, *, with_record: bool) -> Any:
    """`with_record`: this process also tells of the whole installation."""
    if settings.METRICS_TOKEN:
        figures.sort_on()
    read_record = record_figures.read_figures if with_record else _read_nothing

    # No coroutine of its own: each costs every call.
    def route(scope: Any, receive: Any, send: Any) -> Any:
        if scope.get("path") == PATH and settings.METRICS_TOKEN:
            return _respond(scope, send, read_record)
        return app(scope, receive, send)

    return route


def _read_nothing(_found: list[Metric]) -> None:
    pass


async def _respond(scope: Any, send: Any, read_record: ReadRecord) -> None:
    headers = dict(scope["headers"])
    if scope["method"] not in ("GET", "HEAD"):
        await reply_stream.respond(send, 405, b"", ((b"allow", b"GET, HEAD"),))
    elif not _is_allowed(headers.get(b"authorization", b"")):
        await reply_stream.respond(send, 401, b"", ((b"www-authenticate", b"Bearer"),))
    else:
        await _answer(send, headers.get(b"accept", b"").decode("latin-1"), read_record)


def _is_allowed(authorization: bytes) -> bool:
    scheme, _, token = authorization.partition(b" ")
    expected = settings.METRICS_TOKEN.encode()
    return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), expected)


async def _answer(send: Any, accept: str, read_record: ReadRecord) -> None:
    encode, content_type = choose_encoder(accept)
    found = [*process_figures.read_figures(), *await _of_the_record(read_record)]
    body = encode(_Collected(found))
    start = [
        (b"content-type", content_type.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def _of_the_record(read_record: ReadRecord) -> Iterable[Metric]:
    """Reads until the deadline; waits for nothing beyond it."""
    found: list[Metric] = []
    reading = asyncio.get_running_loop().run_in_executor(_threads, read_record, found)
    await asyncio.wait([reading], timeout=WITHIN_S)
    return [*found]


class _Collected:
    """A registry, as far as an encoder looks."""

    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> list[Metric]:
        return self._found
