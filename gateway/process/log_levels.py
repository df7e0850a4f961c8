"""Log levels of sessions of earlier revisions: rows, since the next request may reach another
process."""

from __future__ import annotations

from collections import OrderedDict

import psycopg
from psycopg_pool import PoolTimeout

from calls.running.runtime import CallRuntime
from core.errors import RecordUnavailable
from core.listen import LEVEL

UNREADABLE = "The record cannot be read right now. Try again soon."
# Sessions whose wish is remembered here; of others it is read again.
KNOWN = 10_000

_SET = """
    INSERT INTO calls_loglevel (session, level, set_at) VALUES (%s, %s, clock_timestamp())
    ON CONFLICT (session) DO UPDATE SET level = EXCLUDED.level, set_at = EXCLUDED.set_at
"""
# Sessions last a day.
_FORGET = "DELETE FROM calls_loglevel WHERE set_at < clock_timestamp() - interval '2 days'"
_GET = "SELECT level FROM calls_loglevel WHERE session = %s"


class SessionLogLevels:
    """Log levels that sessions have set. Setting one notifies all processes."""

    def __init__(self, call_runtime: CallRuntime) -> None:
        self._hands = call_runtime
        self._known: OrderedDict[str, str] = OrderedDict()
        call_runtime.listener.on(LEVEL, self._on_notify)

    async def of(self, session: str) -> str:
        """Empty where nothing was wished."""
        if session not in self._known:
            self._remember(session, await self._read(session))
        return self._known[session]

    async def set(self, session: str, level: str) -> None:
        try:
            async with self._hands.pool.connection(timeout=2) as link, link.transaction():
                await link.execute(_SET, (session, level))
                await link.execute(_FORGET)
                await link.execute("SELECT pg_notify(%s, %s)", (LEVEL, f"{session} {level}"))
        except (psycopg.Error, PoolTimeout) as error:
            raise RecordUnavailable(UNREADABLE) from error
        self._remember(session, level)

    async def _read(self, session: str) -> str:
        try:
            async with self._hands.pool.connection(timeout=2) as link:
                row = await (await link.execute(_GET, (session,))).fetchone()
        except (psycopg.Error, PoolTimeout) as error:
            raise RecordUnavailable(UNREADABLE) from error
        return str(row[0]) if row else ""

    def _on_notify(self, payload: str) -> None:
        session, _, level = payload.partition(" ")
        self._remember(session, level)

    def _remember(self, session: str, level: str) -> None:
        self._known[session] = level
        self._known.move_to_end(session)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
