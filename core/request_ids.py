"""The id of an HTTP request: in its answer's `X-Request-Id`, and in what is logged meanwhile.

The client's own, or its proxy's, if it is well formed: so that it cannot bring a token or a second
line into a log. Otherwise ours, which no other process makes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from contextvars import ContextVar
from itertools import count
from typing import Protocol

HEADER = b"x-request-id"
# No underscore, which every agent's token has.
_well_formed = re.compile(rb"[0-9A-Za-z.:-]{1,64}").fullmatch
# Whoever has no time for a call of `make_id` puts them together.
FORM, PREFIX, NUMBERS = b"%b-%x", secrets.token_hex(5).encode(), count(1)


class Identified(Protocol):
    request_id: bytes
    # Tasks that were begun meanwhile, and outlive the request, have a copy of the variable.
    response_complete: bool


class HandledRequest:
    __slots__ = ("request_id", "response_complete", "trace_id")

    def __init__(self, request_id: bytes) -> None:
        self.request_id = request_id
        # Of its span, which ends before the request does; "": it has none.
        self.trace_id = ""
        self.response_complete = False


current: ContextVar[Identified | None] = ContextVar("request", default=None)


def make_id() -> bytes:
    return FORM % (PREFIX, next(NUMBERS))


def id_from(lines: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The id of a request with these headers, whose names are in lower case."""
    told = next((value.strip() for name, value in lines if name == HEADER), b"")
    return told if _well_formed(told) else make_id()


def current_id() -> str:
    """Empty where no request is being handled."""
    request = current.get()
    return "" if request is None or request.response_complete else request.request_id.decode()


def note_trace(trace_id: str) -> None:
    request = current.get()
    if isinstance(request, HandledRequest):
        request.trace_id = trace_id


def request_trace_id() -> str:
    """The trace of the request that is being handled; empty where there is none."""
    request = current.get()
    if not isinstance(request, HandledRequest) or request.response_complete:
        return ""
    return request.trace_id
