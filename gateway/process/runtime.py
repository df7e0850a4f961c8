"""The agents' process: what it holds in memory, and how it knows that this is still valid.

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
from typing import Any, TypeVar

import psycopg
from django.db import DatabaseError, connection, transaction
from psycopg_pool import PoolTimeout

from accounts import tokens
from accounts.tokens import TokenBook
from approvals import grants
from approvals.grants import GrantBook
from calls import pauses
from calls.freezes import FreezeBook
from calls.running.runtime import CallRuntime
from core.errors import RecordUnavailable
from core.listen import GENERATION
from gateway.process.call_watcher import CallWatcher
from gateway.process.client_habits import ClientHabits
from gateway.process.completed_pages import PageListeners
from gateway.process.config_changes import ConfigChangeNotifier
from gateway.process.limit_shares import LimitShares
from gateway.process.limit_windows import LimitWindows
from gateway.process.log_levels import SessionLogLevels
from gateway.process.new_call_cache import NewCallCache
from gateway.process.resource_streams import ResourceStreams
from gateway.process.session_tasks import TaskListeners
from policies import decide
from policies.decide import RuleBook
from policies.limits import compiled as limits
from policies.limits.compiled import LimitBook
from registry.publishing import published_catalogue
from registry.publishing.published_tools import Catalogue

log = logging.getLogger(__name__)

T = TypeVar("T")

FRESH_S = 1.0
# To find out whether anything changed, and to read what did.
ANSWER_S = 1.5
PATIENCE_S = 5.0
# Of more tools than so many the next snapshot takes its time: it is not waited for while the one
# before is fresh enough.
MANY = 1_000
NOT_KNOWN = "Whether the token is still valid cannot be known right now. Try again soon."


@dataclass(frozen=True, slots=True)
class Snapshot:
    generation: int
    tokens: TokenBook
    catalogue: Catalogue
    rules: RuleBook
    grants: GrantBook
    freezes: FreezeBook
    limits: LimitBook = field(default_factory=LimitBook)
    openings: NewCallCache = field(default_factory=NewCallCache)


class Runtime:
    """One for each event loop that serves agents."""

    def __init__(self) -> None:
        self.call_runtime = CallRuntime()
        self.watch = CallWatcher(self.call_runtime)
        self.habits = ClientHabits()
        self.limits = LimitShares(self.call_runtime.pool, self.keep)
        self.limit_windows = LimitWindows(self.keep)
        self.levels = SessionLogLevels(self.call_runtime)
        self.config_changes: ConfigChangeNotifier[Snapshot] = ConfigChangeNotifier(
            self.call_runtime.listener, self.changed
        )
        # Calls that go on although nobody is answered just now.
        self._calls: set[asyncio.Task[Any]] = set()
        self.pages = PageListeners(self.call_runtime.listener)
        self.tasks = TaskListeners(self.call_runtime.listener)
        self.updates = ResourceStreams(self.call_runtime.engine, self.call_runtime.listener)
        self._snapshot: Snapshot | None = None
        self._checked_at = self._failed_at = float("-inf")
        # When the snapshot is known to have been the newest.
        self._true_at = float("-inf")
        self._next: asyncio.Task[Snapshot] | None = None
        self._reading = asyncio.Lock()

    async def start(self) -> None:
        self.watch.task.start()
        await self.call_runtime.start()

    async def aclose(self) -> None:
        await self.updates.aclose()
        await self.config_changes.aclose()
        await self._cut_off()
        await self.limit_windows.aclose()
        if self._next is not None:
            self._next.cancel()
        await self.watch.task.aclose()
        await self.call_runtime.aclose()

    def keep(self, call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(call, name="call")
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
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
        snapshot, listener = self._snapshot, self.call_runtime.listener
        if snapshot is None:
            return await self.newest()
        if listener.known_at >= self._checked_at:
            current, known_at = listener.generation, listener.known_at
        else:
            current, known_at = snapshot.generation, self._checked_at
        if snapshot.generation == current and time.monotonic() - known_at < FRESH_S:
            self._true_at = known_at
            return snapshot
        return await self.newer()

    async def newer(self) -> Snapshot:
        """The next, which is made once for all who want it; or the one before it, if that is as
        fresh as `fresh` promises, and the next takes its time or cannot be read."""
        snapshot = self._snapshot or await self.newest()
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self.newest(), name="snapshot")
            self._next.add_done_callback(_retrieve)
        coming = self._next
        if len(snapshot.catalogue) <= MANY or not self._serves():
            await asyncio.wait([coming])
        if self._serves() and (not coming.done() or coming.exception()):
            return snapshot
        newer = await asyncio.shield(coming)
        # Whoever came late to it waits for one that is as fresh as was promised.
        is_fresh = time.monotonic() - self._checked_at < FRESH_S
        return newer if is_fresh else await self.newest()

    def _serves(self) -> bool:
        """The snapshot that there is was the newest less than FRESH_S ago."""
        return time.monotonic() - self._true_at < FRESH_S

    @property
    def snapshot_age_s(self) -> float:
        """How long ago the snapshot is known to have been the newest; infinite without one. While
        nobody asks, it is the listener that knows."""
        listener, snapshot = self.call_runtime.listener, self._snapshot
        known_at = self._true_at
        if snapshot is not None and snapshot.generation == listener.generation:
            known_at = max(known_at, listener.known_at)
        return time.monotonic() - known_at

    async def settled(self) -> Snapshot:
        """The snapshot that includes a change which the caller knows of; the newest one there is,
        where loading takes long."""
        is_large = self._snapshot is not None and len(self._snapshot.catalogue) > MANY
        return await (self.newer() if is_large else self.newest())

    async def changed(self) -> Snapshot:
        """Like `fresh`, with every change that this process knows of."""
        snapshot = await self.fresh()
        known = self.call_runtime.listener.generation
        return snapshot if snapshot.generation == known else await self.newest()

    async def newest(self) -> Snapshot:
        """Like `fresh`, but always asks the database."""
        asked_at = time.monotonic()
        async with self._reading:
            # Whoever waited for this lock may find the work done, or that it cannot be done now.
            if self._failed_at >= asked_at:
                raise RecordUnavailable(NOT_KNOWN)
            if self._snapshot is None or self._checked_at < asked_at:
                await self._read()
            assert self._snapshot is not None
            return self._snapshot

    async def _read(self) -> None:
        asked_at = time.monotonic()
        try:
            async with asyncio.timeout(ANSWER_S):
                generation = await self._generation()
            async with asyncio.timeout(PATIENCE_S):
                if self._snapshot is None or self._snapshot.generation != generation:
                    self._snapshot = await asyncio.to_thread(_load)
        except (psycopg.Error, DatabaseError, PoolTimeout, TimeoutError, OSError) as error:
            self._failed_at = time.monotonic()
            raise RecordUnavailable(NOT_KNOWN) from error
        self._checked_at = self._true_at = asked_at

    async def _generation(self) -> int:
        async with self.call_runtime.pool.connection(timeout=ANSWER_S) as link:
            cursor = await link.execute(GENERATION)
            row = await cursor.fetchone()
        return int(row[0]) if row else 0


def _retrieve(coming: asyncio.Task[Snapshot]) -> None:
    """Retrieves the error of a load that nobody may wait for any more."""
    if not coming.cancelled():
        coming.exception()


def _load() -> Snapshot:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # One moment for all tables, and its number.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute(GENERATION)
            (generation,) = cursor.fetchone()
            books = (
                tokens.load(),
                published_catalogue.load(),
                decide.load(),
                grants.load(),
                pauses.load(),
                limits.load(),
            )
            return Snapshot(generation, *books)
    finally:
        connection.close()
