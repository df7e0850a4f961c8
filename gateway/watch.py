"""Waiting for calls that run elsewhere: a nudge from the database, and a look every second."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from uuid import UUID

import psycopg
from psycopg_pool import PoolTimeout

from calls.answers import Answer, Look, look
from calls.hands import Hands
from calls.progress import OnStep, Step
from core.listen import CALL

log = logging.getLogger(__name__)

EVERY_S = 1.0


class Watcher:
    """One waiter's view of one call."""

    def __init__(self, on_step: OnStep | None) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._on_step = on_step
        self._seen: float | None = None

    def see(self, seen: Look) -> None:
        if seen.progress is not None and seen.progress != self._seen and self._on_step:
            self._seen = seen.progress
            self._on_step(Step(seen.progress, seen.total, seen.message))
        if seen.answer is not None and not self.answer.done():
            self.answer.set_result(seen.answer)


class Watch:
    """Reads all rows that anybody here waits for with one query."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._watchers: dict[UUID, set[Watcher]] = {}
        self._due: set[UUID] = set()
        self._nudge = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.hurried = False
        self._for_people: set[asyncio.Timeout] = set()
        hands.listener.on(CALL, self._heard)

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="watch")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def wait(
        self, call_id: UUID, *, seconds: float, on_step: OnStep | None = None
    ) -> Answer | None:
        """The call's answer, or None if it has not ended within `seconds`."""
        watcher = Watcher(on_step)
        self._watchers.setdefault(call_id, set()).add(watcher)
        self._look_at(call_id)
        try:
            async with asyncio.timeout(seconds):
                return await watcher.answer
        except TimeoutError:
            return None
        finally:
            self._forget(call_id, watcher)

    async def wait_for_people(
        self, call_id: UUID, *, seconds: float, on_step: OnStep | None = None
    ) -> Answer | None:
        """As long as this process may, which is to end soon when it is hurried."""
        patience = asyncio.timeout(0 if self.hurried else seconds)
        self._for_people.add(patience)
        try:
            async with patience:
                return await self.wait(call_id, seconds=seconds + EVERY_S, on_step=on_step)
        except TimeoutError:
            return None
        finally:
            self._for_people.discard(patience)

    def hurry(self) -> None:
        self.hurried = True
        for patience in self._for_people:
            if not patience.expired():
                patience.reschedule(asyncio.get_running_loop().time())

    def _forget(self, call_id: UUID, watcher: Watcher) -> None:
        watchers = self._watchers[call_id]
        watchers.discard(watcher)
        if not watchers:
            del self._watchers[call_id]

    def _heard(self, payload: str) -> None:
        with contextlib.suppress(ValueError):
            self._look_at(UUID(payload))

    def _look_at(self, call_id: UUID) -> None:
        if call_id in self._watchers:
            self._due.add(call_id)
            self._nudge.set()

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._nudge.wait(), EVERY_S)
                due = self._due
            except TimeoutError:
                due = set(self._watchers)
            self._due = set()
            self._nudge.clear()
            await self._look(due & set(self._watchers))

    async def _look(self, ids: set[UUID]) -> None:
        if not ids:
            return
        try:
            async with self._hands.pool.connection(timeout=2) as connection:
                seen = await look(connection, list(ids))
        except (psycopg.Error, PoolTimeout) as error:
            log.warning("watch: cannot look: %s", str(error).strip())
            return
        for call_id, what in seen.items():
            for watcher in tuple(self._watchers.get(call_id, ())):
                watcher.see(what)
