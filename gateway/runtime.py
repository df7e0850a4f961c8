"""What the agents' path holds in memory, and how it knows that it is still true.

A snapshot is immutable and whole: tokens, definitions and rules of one moment, with the number
of that moment. Any change of configuration raises the number; a process that has not seen the
number for FRESH_S answers nobody, because a token may have been revoked meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.db import DatabaseError, connection, transaction
from psycopg_pool import PoolTimeout

from accounts import tokens
from accounts.tokens import TokenBook
from approvals import grants
from approvals.grants import GrantBook
from calls import freezes
from calls.answers import Answer
from calls.freezes import FreezeBook
from calls.hands import Hands
from core.errors import RecordUnavailable
from gateway.ears import Ears
from gateway.levels import Levels
from gateway.opening import Openings
from gateway.pages import Pages
from gateway.updates import Updates
from gateway.watch import Watch
from policies import decide
from policies.decide import RuleBook
from registry import published
from registry.published import Catalogue

log = logging.getLogger(__name__)

FRESH_S = 1.0
PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    generation: int
    tokens: TokenBook
    catalogue: Catalogue
    rules: RuleBook
    grants: GrantBook
    freezes: FreezeBook
    openings: Openings = field(default_factory=Openings)


class Runtime:
    """One for each event loop that serves agents."""

    def __init__(self) -> None:
        self.hands = Hands()
        self.watch = Watch(self.hands)
        self.levels = Levels(self.hands)
        self.ears: Ears[Snapshot] = Ears(self.hands.listener, self.fresh)
        # Calls that go on although nobody is answered just now.
        self._calls: set[asyncio.Task[Answer | None]] = set()
        self.pages = Pages(self.hands.listener)
        self.updates = Updates(self.hands.engine, self.hands.listener)
        self._snapshot: Snapshot | None = None
        self._checked_at = float("-inf")
        self._reading = asyncio.Lock()

    async def start(self) -> None:
        self.watch.start()
        await self.hands.start()

    async def aclose(self) -> None:
        await self.updates.aclose()
        await self.ears.aclose()
        await self._cut_off()
        await self.watch.aclose()
        await self.hands.aclose()

    def keep(self, call: Coroutine[Any, Any, Answer | None]) -> asyncio.Task[Answer | None]:
        task = asyncio.create_task(call, name="call")
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Answer | None]) -> None:
        self._calls.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a call's end could not be written down: %s", error)

    async def _cut_off(self) -> None:
        """They wait for agents; what is known of them is written down."""
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def fresh(self) -> Snapshot:
        """The configuration as it was at most FRESH_S ago; raises RecordUnavailable."""
        snapshot = self._snapshot
        if snapshot is not None and self._is_fresh(snapshot):
            return snapshot
        return await self.newest()

    def _is_fresh(self, snapshot: Snapshot) -> bool:
        listener = self.hands.listener
        if listener.known_at >= self._checked_at:
            current, known_at = listener.generation, listener.known_at
        else:
            current, known_at = snapshot.generation, self._checked_at
        return snapshot.generation == current and time.monotonic() - known_at < FRESH_S

    async def newest(self) -> Snapshot:
        """As `fresh`, but asks the database now."""
        asked_at = time.monotonic()
        async with self._reading:
            # Whoever waited for this lock may find the work done.
            if self._snapshot is None or self._checked_at < asked_at:
                await self._read()
            assert self._snapshot is not None
            return self._snapshot

    async def _read(self) -> None:
        asked_at = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                generation = await self._generation()
                if self._snapshot is None or self._snapshot.generation != generation:
                    self._snapshot = await asyncio.to_thread(_load)
        except (psycopg.Error, DatabaseError, PoolTimeout, TimeoutError, OSError) as error:
            raise RecordUnavailable(
                "Whether the token is still valid cannot be known right now. Try again soon."
            ) from error
        self._checked_at = asked_at

    async def _generation(self) -> int:
        async with self.hands.pool.connection(timeout=2) as link:
            cursor = await link.execute("SELECT n FROM core_generation")
            row = await cursor.fetchone()
        return int(row[0]) if row else 0


def _load() -> Snapshot:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # One moment for all tables, and its number.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SELECT n FROM core_generation")
            (generation,) = cursor.fetchone()
            books = (tokens.load(), published.load(), decide.load(), grants.load(), freezes.load())
            return Snapshot(generation, *books)
    finally:
        connection.close()
