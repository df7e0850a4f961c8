"""Windows of limits: a flood of refusals has one entry, with their number."""

from __future__ import annotations

import asyncio
import atexit
import logging
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection

from audit.services import POLICY, record
from core.errors import RecordUnavailable
from policies.limits.compiled import LimitReached

log = logging.getLogger(__name__)

# A window is as long as the limit says to wait, but at least and at most so long.
LEAST_S, MOST_S = 60.0, 3600.0
MOST_WINDOWS = 20_000
NOT_RECORDED = "The refusal cannot be recorded right now. Nothing was sent."

# By its id and its name: whose calls these are.
WindowAgent = tuple[int, str]
# A limit's id, what it counts for, whether calls are blocked, and whose they are.
Place = tuple[int, str, bool, int]
Keep = Callable[[Coroutine[Any, Any, None]], object]
Write = Callable[[], Awaitable[object]]


@dataclass(slots=True, eq=False)
class RefusalWindow:
    """`call_id`: of the first, which is recorded as a call that was refused; None: nothing was
    refused. `more`: calls that are not in the record yet."""

    reached: LimitReached
    agent: WindowAgent
    call_id: UUID | None
    ends_at: float = 0.0
    more: int = 0
    # The first is in the record, or will not be.
    first_written: asyncio.Event = field(default_factory=asyncio.Event)
    is_recorded: bool = True


class LimitWindows:
    """One for each event loop that serves agents."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        # The web process and commands never close what lives on their background loop.
        atexit.register(_write_at_exit, weakref.ref(self))
        self._open: dict[Place, RefusalWindow] = {}
        # Also those that have ended and are not written down yet.
        self._unwritten: set[RefusalWindow] = set()

    async def refuse(
        self, reached: LimitReached, agent: WindowAgent, call_id: UUID, write: Write
    ) -> UUID:
        """Returns the recorded call that stands for this refusal: the first of its window, which
        `write` writes down. Raises RecordUnavailable where that could not be written."""
        # A count may be shared: no agent is told another's call.
        place = _place(reached, agent, is_blocked=True)
        window = self._current(place)
        if window is None:
            window = self._begin(place, RefusalWindow(reached, agent, call_id))
            return await self._record_first(place, window, call_id, write)
        window.more += 1
        # Its agent may ask for it at once.
        await window.first_written.wait()
        if not window.is_recorded:
            raise RecordUnavailable(NOT_RECORDED, call_id=call_id)
        assert window.call_id is not None
        return window.call_id

    async def _record_first(
        self, place: Place, window: RefusalWindow, call_id: UUID, write: Write
    ) -> UUID:
        try:
            await write()
        except BaseException:
            # The next is the first of another. Nobody was told that these were refused.
            window.is_recorded, window.more = False, 0
            self._close(place, window)
            raise
        finally:
            window.first_written.set()
        return call_id

    def note_reached(self, reached: LimitReached, agent: WindowAgent) -> None:
        """A limit was reached, and that alone blocks nothing: an entry, once a window."""
        place = _place(reached, agent, is_blocked=False)
        window = self._current(place)
        if window is not None:
            window.more += 1
            return
        first = self._begin(place, RefusalWindow(reached, agent, None))
        self._keep(_note_first(first))

    def _current(self, place: Place) -> RefusalWindow | None:
        window = self._open.get(place)
        return window if window is not None and window.ends_at > time.monotonic() else None

    def _begin(self, place: Place, window: RefusalWindow) -> RefusalWindow:
        lasts_s = min(max(window.reached.wait_s or LEAST_S, LEAST_S), MOST_S)
        window.ends_at = time.monotonic() + lasts_s
        if len(self._open) < MOST_WINDOWS:
            self._open[place] = window
            self._unwritten.add(window)
            self._keep(self._end(place, window, lasts_s))
        return window

    async def _end(self, place: Place, window: RefusalWindow, lasts_s: float) -> None:
        await asyncio.sleep(lasts_s)
        self._close(place, window)
        while window.more:
            await asyncio.to_thread(_write_all, [window])
            if window.more:
                # The database does not take it now.
                await asyncio.sleep(LEAST_S)
        self._unwritten.discard(window)

    def _close(self, place: Place, window: RefusalWindow) -> None:
        if self._open.get(place) is window:
            del self._open[place]

    async def aclose(self) -> None:
        """Writes down what was not in the record yet, since the process stops."""
        self._open.clear()
        if windows := self.unwritten():
            await asyncio.to_thread(_write_all, windows)

    def unwritten(self) -> list[RefusalWindow]:
        return [window for window in self._unwritten if window.more]


def _write_at_exit(found: weakref.ref[LimitWindows]) -> None:
    if (windows := found()) and (unwritten := windows.unwritten()):
        _write_all(unwritten)


def _place(reached: LimitReached, agent: WindowAgent, *, is_blocked: bool) -> Place:
    return reached.limit.id, reached.key.key, is_blocked, agent[0]


def _write_all(windows: Sequence[RefusalWindow]) -> None:
    """Leaves `more` as it is where the database does not take it."""
    try:
        for window in windows:
            calls, window.more = window.more, 0
            try:
                _write(window, calls)
            except DatabaseError as error:
                window.more += calls
                log.warning("what a limit refused is not counted in the record yet: %s", error)
    finally:
        connection.close()


async def _note_first(window: RefusalWindow) -> None:
    first = RefusalWindow(window.reached, window.agent, None, more=1)
    await asyncio.to_thread(_write_all, [first])


def _write(window: RefusalWindow, calls: int) -> None:
    reached, limit = window.reached, window.reached.limit
    record(
        "limit.refused" if window.call_id else "limit.reached",
        actor=POLICY,
        agent=window.agent,
        reason=reached.sentence,
        limit=limit.name,
        limit_mode="shadow" if limit.shadow else "enforce",
        limit_effect=limit.effect.value,
        counted=reached.key.label,
        calls=calls,
    )
