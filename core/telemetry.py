"""Spans of requests and of calls to servers, in this process's memory.

Off, one look at a variable is all that a call pays. On, a span is an object of ours that is put at
the end of a queue when it ends; config/telemetry.py makes OpenTelemetry's of it, in a thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from random import getrandbits
from typing import Literal

# Where nobody takes them in time, the oldest are dropped.
ENDED_MAX = 20_000
TRACEPARENT = "traceparent"

Kind = Literal["server", "client"]
Attributes = dict[str, str | int]


class OpenSpan:
    """A span that has begun; `parent_id` is 0 where a trace begins with it."""

    __slots__ = (
        *("attributes", "began_ns", "ended_ns", "error", "is_local", "is_sampled", "kind"),
        *("name", "parent_id", "reply", "span_id", "trace_id"),
    )

    def __init__(self, kind: Kind, name: str, attributes: Attributes) -> None:
        self.kind, self.name, self.attributes = kind, name, attributes
        self.span_id = getrandbits(64) or 1
        self.trace_id = self.parent_id = 0
        # Whether its parent is a span of this process.
        self.is_local = self.is_sampled = False
        # The error that it ended with; "": none. Of a reply, it is looked for later.
        self.error, self.reply = "", b""
        self.began_ns, self.ended_ns = time.time_ns(), 0

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.is_sampled):02x}"


ended: deque[OpenSpan] = deque(maxlen=ENDED_MAX)
_current: ContextVar[OpenSpan | None] = ContextVar("span", default=None)
# Whether a trace that begins here, by its id, is one of those that are kept. None: all this is off.
_samples: Callable[[int], bool] | None = None
# Looked at by every call, which a function would cost more.
is_on = False


def switch_on(samples: Callable[[int], bool]) -> None:
    global _samples, is_on
    _samples, is_on = samples, True


@contextmanager
def opened(
    kind: Kind, name: str, attributes: Attributes, trace: Mapping[str, str]
) -> Iterator[OpenSpan]:
    """A span below the one that is open here, or below its client's by W3C Trace Context."""
    span, parent = OpenSpan(kind, name, attributes), _current.get()
    _place(span, parent, trace)
    _current.set(span)
    try:
        yield span
    except BaseException as error:
        span.error = type(error).__name__
        raise
    finally:
        span.ended_ns = time.time_ns()
        _current.set(parent)
        ended.append(span)


def note_call(call_id: object, state: str) -> None:
    """Which call the request that is answered here became."""
    if (span := _current.get()) is not None:
        span.attributes["countersign.call.id"] = str(call_id)
        span.attributes["countersign.call.state"] = state


def current_trace_id() -> str:
    """In 32 hexadecimal digits. Empty outside a span, as for a task that outlives its span."""
    span = _current.get()
    return "" if span is None or span.ended_ns else f"{span.trace_id:032x}"


def passed_on(trace: Mapping[str, str]) -> Mapping[str, str]:
    """The trace for a server: below the span that is open here, where there is one."""
    span = _current.get()
    return trace if span is None else {**trace, TRACEPARENT: span.traceparent}


def _place(span: OpenSpan, parent: OpenSpan | None, trace: Mapping[str, str]) -> None:
    if parent is not None:
        span.trace_id, span.parent_id = parent.trace_id, parent.span_id
        span.is_local, span.is_sampled = True, parent.is_sampled
    elif not _follow(span, trace.get(TRACEPARENT, "")):
        span.trace_id, span.parent_id = getrandbits(128) or 1, 0
        span.is_sampled = _samples is not None and _samples(span.trace_id)


def _follow(span: OpenSpan, traceparent: str) -> bool:
    """Whether it names a trace and a span, which are never 0."""
    parts = traceparent.split("-")
    if len(parts) != 4:
        return False
    span.trace_id, span.parent_id = int(parts[1], 16), int(parts[2], 16)
    span.is_sampled = bool(int(parts[3], 16) & 1)
    return bool(span.trace_id and span.parent_id)
