"""Writing down how calls ended, also when the database is away just then.

What came back is then kept in the spool first: by this process it is written down as soon as it
can be, and by any other if this one dies before.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import orjson
from django.conf import settings

from audit.services import SYSTEM
from calls.content import received_results
from calls.content.large_results import LARGE, lines_of
from calls.record import resource_links
from calls.record.states import Executed, State
from calls.record.transitions import MOVE
from calls.record.usual_calls import SUCCEED
from calls.running.late_replies import LATE, is_evidence
from core.errors import RecordUnavailable
from core.journal import GroupCommit, Line
from core.pipeline import Row
from core.spool import AbandonedSpool, Spool

log = logging.getLogger(__name__)

# Waiting longer than this for a commit, an outcome is kept.
PATIENCE_S = 0.5
# Who waits for an outcome that the record does not take is told so after so long.
UNWRITTEN_S = 2.0
# What SUCCEED takes of a line of MOVE besides the call and its fence; and what it writes of target,
# execution and actor, where there is nothing else to say.
RESULT = ("result", "result_kind", "result_size", "result_digest")
PLAIN = State.SUCCEEDED, Executed.YES, SYSTEM.kind, SYSTEM.name
# So long a process that ends waits for outcomes whose calls were cut off while they were written.
LEFT_S = 1.0
# So often is looked whether another process left anything behind.
EVERY_S = 2.0


@dataclass(slots=True, eq=False)
class PendingOutcome:
    """A line of MOVE that is not known to be durable."""

    line: dict[str, Any]
    known_at: float = field(default_factory=time.time)
    since: float = field(default_factory=time.monotonic)
    kept: bool = False
    recorded: bool = False
    # Resolves when who waits for it is to wait no longer; None: there is no such moment.
    released: asyncio.Future[None] | None = None

    @property
    def name(self) -> str:
        return f"{self.line['id']}.{self.line['fence']}"

    def until_released(self, work: asyncio.Future[Any]) -> Awaitable[Any]:
        """Over with `work`, or before, once this is released. Whoever waits may be cancelled; the
        work goes on."""
        if self.released is None:
            return asyncio.shield(work)
        work.add_done_callback(self.release)
        return self.released

    def release(self, _: object = None) -> None:
        if self.released is not None and not self.released.done():
            self.released.set_result(None)


class OutcomeHolder(Protocol):
    end: PendingOutcome | None
    is_patient: bool


class OutcomeWriter:
    """One for each engine; `flights` are its calls."""

    def __init__(
        self, journal: GroupCommit, flights: Mapping[UUID, OutcomeHolder], owner: str
    ) -> None:
        self._journal = journal
        self._flights = flights
        self._spool = Spool(settings.DATA_DIR / "spool", owner)
        self._task: asyncio.Task[None] | None = None
        # One at a time: keeping makes the folder when it is first needed.
        self._keeping = asyncio.Lock()
        # Outcomes for which nobody waits any more.
        self._left: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="safekeeping")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._left:
            await asyncio.wait(self._left, timeout=LEFT_S)
        await asyncio.to_thread(self._spool.close)

    async def write(
        self, flight: OutcomeHolder, line: dict[str, Any]
    ) -> asyncio.Future[None] | None:
        """None once the end of the call, or what came too late for it, is durable. Who is not
        patient waits for UNWRITTEN_S, and is given what is still to come."""
        end = flight.end = PendingOutcome(line)
        if not flight.is_patient:
            end.released = asyncio.get_running_loop().create_future()
        if self._journal.database_down:
            await self._keep(end)
        rows = self._journal.submit(*_lines_of(end))
        rest: asyncio.Future[None] | None = None
        try:
            await end.until_released(rows)
            if rows.done() and rows.result()[-1] is not None and not end.kept:
                end.recorded = True
                return None
            rest = asyncio.ensure_future(self._finish(end, rows))
            await end.until_released(rest)
        except asyncio.CancelledError:
            self._write_alone(end, rest or asyncio.ensure_future(self._finish(end, rows)))
            raise
        return None if rest.done() and rest.result() is None else rest

    def _write_alone(self, end: PendingOutcome, rest: asyncio.Future[None]) -> None:
        """Its call is cut off, and nobody looks after what came of it."""
        task = asyncio.create_task(self._keep_until_written(end, rest), name="an outcome alone")
        self._left.add(task)
        task.add_done_callback(self._left.discard)

    async def _keep_until_written(self, end: PendingOutcome, rest: asyncio.Future[None]) -> None:
        await self._keep(end)
        try:
            await rest
        except Exception:
            log.exception("call %s: its outcome could not be written", end.line["id"])

    async def _finish(self, end: PendingOutcome, rows: Awaitable[list[Row | None]]) -> None:
        await self._note_if_late(end, (await rows)[-1], within=None)
        end.recorded = True
        if end.kept:
            await asyncio.to_thread(self._spool.drop, end.name)

    async def _note_if_late(
        self, end: PendingOutcome, moved: Row | None, *, within: float | None
    ) -> None:
        if moved is not None:
            return
        log.warning("call %s: ended elsewhere, our outcome came too late", end.line["id"])
        if is_evidence(end.line):
            late = {**end.line, "received_at": end.known_at}
            late.pop(received_results.MEMBER, None)
            await self._journal.write((LATE, late), within=within)

    async def _keep(self, end: PendingOutcome) -> None:
        async with self._keeping:
            if end.kept or end.recorded or not is_evidence(end.line):
                return
            value = orjson.dumps([end.known_at, end.line])
            try:
                await asyncio.to_thread(self._spool.keep, end.name, value)
            except OSError as error:
                log.error("call %s: its reply could not be kept: %s", end.line["id"], error)
                return
            end.kept = True
            log.warning("call %s: its reply is kept in the spool", end.line["id"])
        await self._drop_if_recorded(end)

    async def _drop_if_recorded(self, end: PendingOutcome) -> None:
        # While it was being kept, that is: `write` saw nothing to drop.
        if end.recorded:
            await asyncio.to_thread(self._spool.drop, end.name)

    async def _run(self) -> None:
        looked_at = float("-inf")
        while True:
            try:
                await self._keep_the_waiting()
                if time.monotonic() - looked_at > EVERY_S and not self._journal.database_down:
                    looked_at = time.monotonic()
                    await self._take_over()
            except Exception:
                log.exception("safekeeping failed; it goes on")
            await asyncio.sleep(PATIENCE_S)

    async def _keep_the_waiting(self) -> None:
        late = time.monotonic() - PATIENCE_S
        for flight in list(self._flights.values()):
            if flight.end is None or flight.end.since >= late:
                continue
            if not flight.end.kept:
                await self._keep(flight.end)
            if flight.end.since < time.monotonic() - UNWRITTEN_S:
                flight.end.release()

    async def _take_over(self) -> None:
        for left in self._spool.left_behind():
            for name, value in left.read():
                if not await self._taken_over(left, name, value):
                    return
            left.remove_if_empty()

    async def _taken_over(self, left: AbandonedSpool, name: str, value: bytes) -> bool:
        known_at, line = orjson.loads(value)
        try:
            end = PendingOutcome(line, known_at)
            rows = await self._journal.write(*_lines_of(end), within=5.0)
            await self._note_if_late(end, rows[-1], within=5.0)
        except RecordUnavailable:
            return False
        except Exception as error:
            left.set_aside(name, f"the database did not take it: {error}")
        else:
            log.warning("call %s: its reply was written down from the spool", line["id"])
            left.drop(name)
        return True


def _lines_of(end: PendingOutcome) -> list[Line]:
    """The move comes last."""
    line, move = end.line, MOVE
    facts = line["target"], line["executed"], line["actor_kind"], line["actor"]
    if facts == PLAIN and not (line["reason"] or line["outcome"] or line["details"]):
        move, line = SUCCEED, {"id": line["id"], "fence": line["fence"]}
        # A loop and no comprehension, which is a call.
        for name in RESULT:
            if name in end.line:
                line[name] = end.line[name]
    if received_results.MEMBER in line:
        kept = received_results.lines_of(line)
        rest = {name: line[name] for name in line if name != received_results.MEMBER}
        return [*kept, *resource_links.lines_of(rest), *lines_of(move, rest)]
    if "links" not in end.line and (line.get("result_size") or 0) <= LARGE:
        return [(move, line)]
    return [*resource_links.lines_of(end.line), *lines_of(move, line)]
