"""Keeping hold of the calls that this process runs, and hearing that one is to be cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import psycopg
from django.conf import settings
from psycopg_pool import AsyncConnectionPool

from calls.running.execution import Engine

log = logging.getLogger(__name__)

RENEW = """
    UPDATE calls_call SET lease_until = clock_timestamp() + make_interval(secs => %s)
    WHERE id = ANY(%s) AND lease_owner = %s AND state = 'running'
    RETURNING id, fence, cancel_asked_at IS NOT NULL
"""


class Leases:
    """Renews every third of a lease; a nudge makes it look at once."""

    def __init__(self, engine: Engine, pool: AsyncConnectionPool[Any]) -> None:
        self._engine = engine
        self._pool = pool
        self._nudge = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="leases")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def look(self, call_id: str) -> None:
        """Looks for a requested cancellation of a call that runs here."""
        if any(str(flight) == call_id for flight in self._engine.flights):
            self._nudge.set()

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nudge.wait(), settings.LEASE_S / 3)
            self._nudge.clear()
            try:
                await self._renew()
            except (psycopg.Error, TimeoutError) as error:
                log.warning("leases could not be renewed: %s", str(error).strip())
            except Exception:
                log.exception("Leases could not be renewed; it is tried again.")

    async def _renew(self) -> None:
        flights = dict(self._engine.flights)
        if not flights:
            return
        async with self._pool.connection(timeout=5) as connection:
            cursor = await connection.execute(
                RENEW, (settings.LEASE_S, list(flights), self._engine.owner)
            )
            rows = {row[0]: row for row in await cursor.fetchall()}
        for call_id, flight in flights.items():
            row = rows.get(call_id)
            if row is None or row[1] != flight.fence:
                # Not ours any more: somebody gave us up for dead. Stop rather than go on unseen.
                flight.let_go()
            elif row[2]:
                flight.cancel.set()
