"""Answers to people and agents when the database goes away during their request.

What they asked for may be in the record although its page cannot be shown. Whoever answers them
says what is known, and names the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest

from core.errors import RecordUnavailable, RecordUnsure

ATTRIBUTE = "countersign_told"
AWAY = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)


class CommitUnsure(OperationalError):
    """The database went away while it committed: nobody knows whether it did."""


class Recorded(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class OutageAnswer:
    """The known facts on a request: whether it is recorded, and its call."""

    recorded: Recorded
    call_id: UUID | None = None


def outage_answer(request: HttpRequest) -> OutageAnswer:
    known: OutageAnswer | None = getattr(request, ATTRIBUTE, None)
    if known is not None:
        return known
    reads = request.method in ("GET", "HEAD", "OPTIONS")
    return OutageAnswer(Recorded.NO if reads else Recorded.UNKNOWN, call_in(request))


def note(request: HttpRequest, recorded: Recorded, call_id: UUID | None = None) -> None:
    setattr(request, ATTRIBUTE, OutageAnswer(recorded, call_id or call_in(request)))


def forget(request: HttpRequest) -> None:
    """Drops the facts, since the view answers for itself from here on."""
    request.__dict__.pop(ATTRIBUTE, None)


def call_in(request: HttpRequest) -> UUID | None:
    """The one that its address names."""
    match = request.resolver_match
    found = match.kwargs.get("call_id") if match else None
    return found if isinstance(found, UUID) else None


@contextmanager
def recording(request: HttpRequest) -> Iterator[None]:
    """Around the one transaction that does what a request asks for, and what is read for it."""
    note(request, Recorded.NO)
    try:
        yield
    except (DatabaseError, InterfaceError, RecordUnavailable) as error:
        unsure = any(isinstance(one, CommitUnsure | RecordUnsure) for one in _chain(error))
        call_id = error.call_id if isinstance(error, RecordUnavailable) else None
        note(request, Recorded.UNKNOWN if unsure else Recorded.NO, call_id)
        raise
    note(request, Recorded.YES)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its contexts: Django reconnects before it reports a lost commit."""
    while error is not None:
        yield error
        error = error.__context__


def is_outage(error: BaseException | None) -> bool:
    return isinstance(error, (*AWAY, RecordUnavailable))
