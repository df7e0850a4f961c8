"""Waiting for calls that run elsewhere: a nudge from the database, and a look every second."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import psycopg
from psycopg_pool import PoolTimeout

from calls.content.answers import Answer, CallStatus, load_status
from calls.running import log_book
from calls.running.log_book import Place
from calls.running.progress import OnStep, ProgressStep
from calls.running.runtime import CallRuntime
from core.listen import CALL
from core.nudged_task import NudgedTask
from gateway.process.log_lines import LogStream

log = logging.getLogger(__name__)

EVERY_S = 1.0
# So long an outcome is waited for while the record cannot be read.
BLIND_S = 5.0


@dataclass(frozen=True, slots=True)
class InputRequested:
    """The call asks its agent something; `last` is the newest of its open questions."""

    last: int


@dataclass(frozen=True, slots=True)
class ConsentRequested:
    """The call goes on once its user has opened this page."""

    page: str
    reason: str


class Watcher(Protocol):
    """Lines of its server's log are read only for who says from where on."""

    lines: LogStream | None

    def hear(self, logged: Iterable[tuple[Place, dict[str, Any]]]) -> None: ...

    def see(self, seen: CallStatus) -> None: ...


class Waiter:
    """One waiter's view of one call; with `after`, also of questions that are newer than that."""

    def __init__(
        self,
        on_step: OnStep | None,
        after: int | None,
        lines: LogStream | None,
        *,
        until_consent: bool = False,
    ) -> None:
        self.answer: asyncio.Future[Answer | InputRequested | ConsentRequested] = (
            asyncio.get_running_loop().create_future()
        )
        self._until_consent = until_consent
        self._on_step = on_step
        self._after = after
        self.lines = lines
        self._seen: tuple[float | None, str] = (None, "")

    def hear(self, logged: Iterable[tuple[Place, dict[str, Any]]]) -> None:
        if self.lines is not None and not self.answer.done():
            for place, line in logged:
                self.lines.pass_on(place, line)

    def see(self, seen: CallStatus) -> None:
        if self._on_step and self._seen != (now := (seen.progress, seen.message)):
            rose = seen.progress != self._seen[0]
            self._seen = now
            if rose or seen.message:
                self._on_step(
                    ProgressStep(seen.progress if rose else None, seen.total, seen.message)
                )
        if self.answer.done():
            return
        if seen.answer is not None:
            self.answer.set_result(seen.answer)
        elif self._after is not None and seen.asked > self._after:
            self.answer.set_result(InputRequested(seen.asked))
        elif self._until_consent and seen.consent_page:
            self.answer.set_result(ConsentRequested(seen.consent_page, seen.reason))


class CallWatcher:
    """Reads all rows that anybody here waits for with one query."""

    def __init__(self, call_runtime: CallRuntime) -> None:
        self._hands = call_runtime
        self._watchers: dict[UUID, set[Watcher]] = {}
        self._due: set[UUID] = set()
        self.task = NudgedTask("watch", self._look_around, every_s=lambda: EVERY_S)
        # On the loop's clock, once this process is about to end.
        self.until: float | None = None
        self._patience: dict[asyncio.Timeout, bool] = {}
        # Since when the record could not be read, on the loop's clock; and who goes then.
        self._blind_since: float | None = None
        self._leaving_when_blind: set[asyncio.Timeout] = set()
        call_runtime.listener.on(CALL, self._on_notify)

    async def wait(
        self,
        call_id: UUID,
        *,
        seconds: float,
        on_step: OnStep | None = None,
        for_people: bool = False,
        after: int | None = None,
        lines: LogStream | None = None,
        until_blind: bool = False,
        until_consent: bool = False,
    ) -> Answer | InputRequested | ConsentRequested | None:
        """The call's answer, or None if it has not ended within `seconds`; sooner where this
        process makes way for another, and at once where people are to decide; with `until_blind`
        also where the record cannot be read, with `until_consent` where its user has to consent."""
        watcher = Waiter(on_step, after, lines, until_consent=until_consent)
        self.join(call_id, watcher)
        patience = asyncio.timeout(self._at_most(seconds, for_people=for_people))
        self._patience[patience] = for_people
        if until_blind:
            self._leaving_when_blind.add(patience)
        try:
            async with patience:
                return await watcher.answer
        except TimeoutError:
            return None
        finally:
            del self._patience[patience]
            self._leaving_when_blind.discard(patience)
            self.leave(call_id, watcher)

    def join(self, call_id: UUID, watcher: Watcher) -> None:
        """It sees the call at once, whenever it moves, and every second."""
        self._watchers.setdefault(call_id, set()).add(watcher)
        self._look_at(call_id)

    def leave(self, call_id: UUID, watcher: Watcher) -> None:
        watchers = self._watchers[call_id]
        watchers.discard(watcher)
        if not watchers:
            del self._watchers[call_id]

    @property
    def is_blind(self) -> bool:
        now = asyncio.get_running_loop().time()
        return self._blind_since is not None and now - self._blind_since > BLIND_S

    def shorten_waits(self, seconds: float) -> None:
        """Ends waits for people now, and all others after so many seconds."""
        self.until = asyncio.get_running_loop().time() + seconds
        for patience, for_people in self._patience.items():
            if not patience.expired():
                when = patience.when() or 0.0
                patience.reschedule(0.0 if for_people else min(when, self.until))

    def _at_most(self, seconds: float, *, for_people: bool) -> float:
        if self.until is None:
            return seconds
        left = 0.0 if for_people else self.until - asyncio.get_running_loop().time()
        return max(0.0, min(seconds, left))

    def _on_notify(self, payload: str) -> None:
        with contextlib.suppress(ValueError):
            self._look_at(UUID(payload))

    def _look_at(self, call_id: UUID) -> None:
        if call_id in self._watchers:
            self._due.add(call_id)
            self.task.nudge()

    async def _look_around(self, is_nudged: bool) -> None:
        watched = set(self._watchers)
        due = self._due & watched if is_nudged else watched
        self._due = set()
        await self._look(due)

    async def _look(self, ids: set[UUID]) -> None:
        if not ids:
            if not self._watchers:
                self._blind_since = None
            return
        # Who joins while this is read asked for something else: it is looked for again.
        watchers = {call_id: tuple(self._watchers[call_id]) for call_id in ids}
        wanted = self._logged(ids)
        try:
            async with self._hands.pool.connection(timeout=2) as connection:
                seen = await load_status(connection, list(ids))
                # After it: who sees the end has seen every line.
                logged = await log_book.since(connection, wanted) if wanted else {}
        except (psycopg.Error, PoolTimeout) as error:
            log.warning("watch: cannot look: %s", str(error).strip())
            self._note_blind()
            return
        self._blind_since = None
        for call_id, what in seen.items():
            for watcher in watchers[call_id]:
                if watcher in self._watchers.get(call_id, ()):
                    watcher.hear(logged.get(call_id, ()))
                    watcher.see(what)

    def _note_blind(self) -> None:
        if self._blind_since is None:
            self._blind_since = asyncio.get_running_loop().time()
        if self.is_blind:
            for patience in self._leaving_when_blind:
                if not patience.expired():
                    patience.reschedule(0.0)

    def _logged(self, ids: set[UUID]) -> dict[UUID, Place]:
        """From which line on somebody wants to hear these calls' logs."""
        wanted = {
            call_id: [watcher.lines.place for watcher in self._watchers[call_id] if watcher.lines]
            for call_id in ids
        }
        return {call_id: min(places) for call_id, places in wanted.items() if places}
