"""Keeping hold of the calls that this process runs, and hearing that one is to be cancelled."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import psycopg
from django.conf import settings
from psycopg_pool import AsyncConnectionPool

from calls.running.execution import Engine
from core.nudged_task import NudgedTask

log = logging.getLogger(__name__)

RENEW = """
    UPDATE calls_call SET lease_until = clock_timestamp() + make_interval(secs => %s)
    WHERE id = ANY(%s) AND lease_owner = %s AND state = 'running'
    RETURNING id, fence, cancel_asked_at IS NOT NULL
"""


class HeldLease(NamedTuple):
    fence: int
    is_cancelled: bool


class Leases:
    """Renews every third of a lease; a nudge makes it look at once."""

    def __init__(self, engine: Engine, pool: AsyncConnectionPool[Any]) -> None:
        self._engine = engine
        self._pool = pool
        self.task = NudgedTask("leases", self._keep, every_s=lambda: settings.LEASE_S / 3)

    def look(self, call_id: str) -> None:
        """Looks for a requested cancellation of a call that runs here."""
        if any(str(flight) == call_id for flight in self._engine.flights):
            self.task.nudge()

    async def _keep(self, _is_nudged: bool) -> None:
        try:
            await self._renew()
        except (psycopg.Error, TimeoutError) as error:
            log.warning("leases could not be renewed: %s", str(error).strip())

    async def _renew(self) -> None:
        flights = dict(self._engine.flights)
        if not flights:
            return
        async with self._pool.connection(timeout=5) as connection:
            cursor = await connection.execute(
                RENEW, (settings.LEASE_S, list(flights), self._engine.owner)
            )
            held = {row[0]: HeldLease._make(row[1:]) for row in await cursor.fetchall()}
        for call_id, flight in flights.items():
            lease = held.get(call_id)
            if lease is None or lease.fence != flight.fence:
                # Not ours any more: somebody gave us up for dead. Stop rather than go on unseen.
                flight.let_go()
            elif lease.is_cancelled:
                flight.cancel.set()
