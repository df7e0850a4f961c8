"""Waits for a call's answer, and cancels calls, wherever they run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

import psycopg
from django.db import InterfaceError, OperationalError, connection
from psycopg_pool import PoolTimeout

from approvals import services as approvals
from audit.models import ClockTime
from audit.services import Actor
from calls.content.answers import Answer
from calls.models import Call
from calls.running.progress import OnStep
from core.errors import RecordUnavailable
from gateway.process.log_lines import LogStream
from gateway.process.runtime import Runtime
from gateway.protocol.reply_stream import OnGone

log = logging.getLogger(__name__)

# What must be written down is tried again after so long, then more and more rarely.
AGAIN_S, AGAIN_MAX_S = 0.1, 2.0
T = TypeVar("T")
_HEARD = "UPDATE calls_call SET unheard_at = NULL WHERE id = %s AND unheard_at IS NOT NULL"


async def wait(
    runtime: Runtime,
    call_id: UUID,
    *,
    seconds: float,
    on_step: OnStep | None = None,
    for_people: bool = False,
    lines: LogStream | None = None,
) -> Answer | None:
    """None: it has not ended within `seconds`, or this process makes way for another."""
    seen = await runtime.watch.wait(
        call_id, seconds=seconds, on_step=on_step, for_people=for_people, lines=lines
    )
    return seen if isinstance(seen, Answer) else None


async def cancel(runtime: Runtime, call_id: UUID, *, by: Actor) -> bool:
    """Withdraw, cancel or ask to stop; False if the call had ended. Raises RecordUnavailable in a
    database that nobody has declared."""
    try:
        # First the record: a quick server's end of it must not hide who asked.
        return await asyncio.to_thread(_cancel_and_close, call_id, by)
    finally:
        flight = runtime.call_runtime.engine.flights.get(call_id)
        if flight is not None:
            flight.cancel.set()


def on_disconnect(runtime: Runtime, call_id: UUID, by: Actor | None) -> OnGone:
    """A handler for a client that disconnects: its call's outcome is undelivered, and if `by` is
    given, the call is cancelled."""

    async def leave() -> None:
        if by is not None:
            # It matters most: whatever else fails, the call is cancelled.
            await surely(lambda: cancel(runtime, call_id, by=by))
        await surely(lambda: mark_undelivered(call_id))

    return leave


async def surely(write: Callable[[], Awaitable[T]]) -> T | None:
    """Retries until the database is back, since nobody waits for an error."""
    pause_s = AGAIN_S
    while True:
        try:
            return await write()
        except (OperationalError, InterfaceError) as error:
            log.warning("a client left, and this waits for the record: %s", str(error).strip())
        except RecordUnavailable as error:
            # The declaration says what becomes of its call.
            log.warning("a client left: %s", error)
            return None
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, AGAIN_MAX_S)


async def mark_undelivered(call_id: UUID) -> None:
    """Its agent goes on without having been told how it ended."""
    await asyncio.to_thread(_mark_undelivered, call_id)


async def mark_delivered(runtime: Runtime, call_id: UUID) -> None:
    """Its agent is told how it ended: the same asked for again is meant."""
    with contextlib.suppress(psycopg.Error, PoolTimeout):
        async with runtime.call_runtime.pool.connection(timeout=2) as link:
            await link.execute(_HEARD, (call_id,))


def _mark_undelivered(call_id: UUID) -> None:
    try:
        Call.objects.filter(pk=call_id).update(unheard_at=ClockTime())
    finally:
        connection.close()


def cancel_now(call_id: UUID, *, by: Actor) -> bool:
    """`cancel` for where there is no event loop, in the caller's connection."""
    try:
        return approvals.cancel(call_id, by=by)
    except approvals.Undeclared as error:
        raise RecordUnavailable(str(error), call_id=call_id) from error


def _cancel_and_close(call_id: UUID, by: Actor) -> bool:
    try:
        return cancel_now(call_id, by=by)
    finally:
        connection.close()
