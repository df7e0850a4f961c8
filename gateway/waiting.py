"""For the endpoint: wait for a call's answer, and cancel one, wherever it runs."""

from __future__ import annotations

import asyncio
from uuid import UUID

from django.db import connection

from approvals import services as approvals
from audit.services import Actor
from calls.answers import Answer
from calls.progress import OnStep
from gateway.runtime import Runtime


async def wait(
    runtime: Runtime, call_id: UUID, *, seconds: float, on_step: OnStep | None = None
) -> Answer | None:
    """None: it has not ended within `seconds`."""
    return await runtime.watch.wait(call_id, seconds=seconds, on_step=on_step)


async def cancel(runtime: Runtime, call_id: UUID, *, by: Actor) -> bool:
    """Withdraw, cancel or ask to stop; False if the call had ended."""
    try:
        # First the record: a quick server's end of it must not hide who asked.
        return await asyncio.to_thread(_cancel, call_id, by)
    finally:
        flight = runtime.hands.engine.flights.get(call_id)
        if flight is not None:
            flight.cancel.set()


def _cancel(call_id: UUID, by: Actor) -> bool:
    try:
        return approvals.cancel(call_id, by=by)
    finally:
        connection.close()
