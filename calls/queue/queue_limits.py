"""Queues have an end: who asks for more than can be done is told so before anything is written."""

from __future__ import annotations

from typing import Any

import psycopg
from django.conf import settings
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from core.english import gettext as _
from core.errors import CountersignError, RecordUnavailable

WAITING = """
    SELECT count(*) FILTER (WHERE agent_id = %s), count(*) FROM calls_call
    WHERE state IN ('held', 'approved', 'queued')
"""


class QueueFull(CountersignError):
    """`own`: the agent itself has too much waiting; otherwise all agents together have."""

    def __init__(self, sentence: str, *, own: bool) -> None:
        super().__init__(sentence)
        self.own = own


async def find_room(pool: AsyncConnectionPool[Any], agent_id: int) -> None:
    """Raises QueueFull, and RecordUnavailable when it cannot be known."""
    try:
        async with pool.connection(timeout=2) as link:
            cursor = await link.execute(WAITING, (agent_id,))
            own, everybody = await cursor.fetchone() or (0, 0)
    except (psycopg.Error, PoolTimeout) as error:
        raise RecordUnavailable(_("The record cannot be read right now.")) from error
    if own >= settings.AGENT_QUEUE:
        said = _("%(n)d calls of this agent wait already. Nothing was sent or recorded.")
        raise QueueFull(said % {"n": own}, own=True)
    if everybody >= settings.QUEUE:
        said = _("Too many calls of all agents wait already. Nothing was sent or recorded.")
        raise QueueFull(said, own=False)
