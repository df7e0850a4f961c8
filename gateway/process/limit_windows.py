"""Windows of limits: a flood of refusals has few entries, with their numbers."""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DatabaseError, connection

from audit.services import POLICY, record
from core.errors import RecordUnavailable
from policies.limits.compiled import LimitReached
from policies.unusual import REFUSALS

log = logging.getLogger(__name__)

# A window is as long as the limit says to wait, but at least and at most so long.
LEAST_S, MOST_S = 60.0, 3600.0
MOST_WINDOWS = 20_000
NOT_RECORDED = "The refusal cannot be recorded right now. Nothing was sent."

# By its id and its name: whose calls these are.
WindowAgent = tuple[int, str]
Keep = Callable[[Coroutine[Any, Any, None]], object]
Write = Callable[[], Awaitable[object]]
# The event loop counts calls, and threads write the counts down.
_COUNTING = threading.Lock()
_WRITING = threading.Lock()


class BlockedCall(NamedTuple):
    id: UUID
    agent: WindowAgent
    server: str
    tool: str


class Place(NamedTuple):
    """Which window a call belongs to. Blocked calls of another tool, or for another reason, are not
    counted together; `tool` and `problem`: "" of calls that a limit alone does not block."""

    limit_id: int
    key: str
    agent_id: int
    tool: str = ""
    problem: str = ""


@dataclass(slots=True, eq=False)
class RefusalWindow:
    """`first`: recorded as a call that was refused; None: nothing was refused. `calls`: all of
    them. `more`: those that are not in the record yet, since `since` on the monotonic clock."""

    reached: LimitReached
    agent: WindowAgent
    first: BlockedCall | None = None
    ends_at: float = 0.0
    calls: int = 0
    more: int = 0
    since: float = 0.0
    # Written down before the window ends once there are so many calls: rules look for as many.
    due_at: int = REFUSALS
    # The first is in the record, or will not be.
    first_written: asyncio.Event = field(default_factory=asyncio.Event)
    is_recorded: bool = True

    def count(self) -> None:
        with _COUNTING:
            if not self.more:
                self.since = time.monotonic()
            self.calls, self.more = self.calls + 1, self.more + 1

    def take(self) -> tuple[int, float]:
        """How many are to be written down, and over how many seconds they came."""
        with _COUNTING:
            calls, self.more = self.more, 0
            return calls, time.monotonic() - self.since

    def put_back(self, calls: int, seconds: float) -> None:
        with _COUNTING:
            self.more, self.since = self.more + calls, time.monotonic() - seconds

    @property
    def is_due(self) -> bool:
        """Each time that there are twice as many: a flood of thousands has a dozen entries."""
        if self.calls < self.due_at:
            return False
        self.due_at *= 2
        return True


class LimitWindows:
    """One for each event loop that serves agents."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        # The web process and commands never close what lives on their background loop.
        atexit.register(_write_at_exit, weakref.ref(self))
        self._open: dict[Place, RefusalWindow] = {}
        # Also those that have ended and are not written down yet.
        self._unwritten: set[RefusalWindow] = set()

    async def refuse(self, reached: LimitReached, call: BlockedCall, write: Write) -> UUID:
        """Returns the recorded call that stands for this refusal: the first of its window, which
        `write` writes down. Raises RecordUnavailable where that could not be written."""
        if not reached.is_hopeless:
            self._announce(reached, call.agent)
        # A count may be shared: no agent is told another's call.
        place = Place(reached.limit.id, reached.key.key, call.agent[0], call.tool, reached.problem)
        window = self._current(place)
        if window is None:
            window = self._begin(place, RefusalWindow(reached, call.agent, call, calls=1))
            return await self._record_first(place, window, call, write)
        # Its agent may ask for it at once.
        await window.first_written.wait()
        if not window.is_recorded:
            raise RecordUnavailable(NOT_RECORDED, call_id=call.id)
        window.count()
        if window.is_due:
            self._keep(_write_until_taken(window))
        assert window.first is not None
        return window.first.id

    async def _record_first(
        self, place: Place, window: RefusalWindow, call: BlockedCall, write: Write
    ) -> UUID:
        try:
            await write()
        except BaseException:
            # The next is the first of another. Nobody was told that these were refused.
            window.is_recorded = False
            self._close(place, window)
            raise
        finally:
            window.first_written.set()
        return call.id

    def note_reached(self, reached: LimitReached, agent: WindowAgent) -> None:
        """A limit was reached, and that alone blocks nothing: an entry, once a window."""
        if (window := self._announce(reached, agent)) is not None:
            window.count()

    def _announce(self, reached: LimitReached, agent: WindowAgent) -> RefusalWindow | None:
        """An entry at once, which people are told of. Returns the window that has one already."""
        place = Place(reached.limit.id, reached.key.key, agent[0])
        if (window := self._current(place)) is not None:
            return window
        window = self._begin(place, RefusalWindow(reached, agent))
        window.count()
        self._keep(_write_until_taken(window))
        return None

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
        await _write_until_taken(window)
        self._unwritten.discard(window)

    def _close(self, place: Place, window: RefusalWindow) -> None:
        if self._open.get(place) is window:
            del self._open[place]

    async def aclose(self) -> None:
        """Writes down what was not in the record yet, since the process stops."""
        self._open.clear()
        await asyncio.to_thread(self._write_rest)

    def _write_rest(self) -> None:
        # What is being written by now is either in the record afterwards, or left again.
        with _WRITING:
            windows = self.unwritten()
        if windows:
            _write_all(windows)

    def unwritten(self) -> list[RefusalWindow]:
        return [window for window in self._unwritten if window.more]


def _write_at_exit(found: weakref.ref[LimitWindows]) -> None:
    if (windows := found()) and (unwritten := windows.unwritten()):
        _write_all(unwritten)


async def _write_until_taken(window: RefusalWindow) -> None:
    is_taken = False
    while not is_taken:
        is_taken = await asyncio.to_thread(_write_all, [window])
        if not is_taken:
            # The database does not take it now.
            await asyncio.sleep(LEAST_S)


def _write_all(windows: Sequence[RefusalWindow]) -> bool:
    """Whether the database took them all; leaves `more` as it was where it did not."""
    with _WRITING:
        try:
            return False not in [_write(window) for window in windows]
        finally:
            connection.close()


def _write(window: RefusalWindow) -> bool:
    calls, seconds = window.take()
    if not calls:
        return True
    reached, limit, first = window.reached, window.reached.limit, window.first
    try:
        record(
            "limit.refused" if first else "limit.reached",
            actor=POLICY,
            agent=window.agent,
            server=first.server if first else "",
            tool=first.tool if first else "",
            reason=reached.sentence,
            limit=limit.name,
            limit_mode="shadow" if limit.shadow else "enforce",
            limit_effect=limit.effect.value,
            counted=reached.key.label,
            calls=calls,
            seconds=round(seconds, 3),
        )
    except DatabaseError as error:
        window.put_back(calls, seconds)
        log.warning("what a limit refused is not counted in the record yet: %s", error)
        return False
    return True
