"""Group commit: what arrives while one commit is in flight shares the next.

A statement takes one JSON array and returns rows whose first column is the `id` of the line it
concerns. Lines of one `write` stand or fall together; lines of different writes share a
transaction for speed only: if it fails, each is tried again alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import orjson
import psycopg

from core import figures
from core.connections import KEEPALIVE, PLANS, AsyncConnection
from core.errors import RecordUnavailable, RecordUnsure
from core.pipeline import Pipeline, Row

log = logging.getLogger(__name__)

# While one commit is under way, the next begins on another connection, if so many wait for it.
LANES = 2
WORTH = 4
# A commit takes half of those that wait, so that the next begins on the other connection while this
# one is under way; but what costs little is not split.
UNSPLIT = 64

# A transaction that is not answered by then is given up, and asked for on another connection.
ANSWER_S = 5.0
NAME = "countersign journal"

# A backend that was stopped does, once it goes on, what it had been told before, however long ago
# that was; told to end meanwhile, it ends first. Its number may be a younger one's by then.
END_BACKENDS = f"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = ANY(%s) AND usename = current_user AND application_name = '{NAME}'
  AND backend_start < clock_timestamp() - interval '{ANSWER_S - 1} s'
"""


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """`sql` has one `%s`, a JSON array of lines; `order` places it within a transaction.

    One that is `bounded` has two more: the lowest and the highest id of its lines, so that
    PostgreSQL leaves out months that have none of them before it begins.
    """

    name: str
    sql: str
    order: int
    bounded: bool = False

    def of_one(self, line: Mapping[str, Any] | PreparedLine) -> list[str]:
        """The parameters, for those who execute it by themselves."""
        if isinstance(line, PreparedLine):
            id_, json = line.id, line.json
        else:
            id_, json = str(line["id"]), orjson.dumps(line)
        return [f"[{json.decode()}]", *([id_, id_] if self.bounded else ())]


# Faster than a function of ours, at every commit.
_order = attrgetter("order")


@dataclass(frozen=True, slots=True)
class PreparedLine:
    """A line as JSON already, for those who write many alike."""

    id: str
    json: bytes


Line = tuple[Statement, Mapping[str, Any] | PreparedLine]
# Of a line, and of the row that answers it.
Key = tuple[Statement, str]


class _Write:
    __slots__ = ("done", "gives_up_at", "ids", "json", "keys", "taken")

    def __init__(self, lines: Sequence[Line], done: asyncio.Future[list[Row | None]]) -> None:
        self.json: list[bytes] = []
        self.keys: list[Key] = []
        self.ids: set[str] = set()
        for statement, line in lines:
            if isinstance(line, PreparedLine):
                id_, json = line.id, line.json
            else:
                id_, json = str(line["id"]), orjson.dumps(line)
            self.json.append(json)
            self.keys.append((statement, id_))
            self.ids.add(id_)
        self.done = done
        # Part of a transaction, whose fate may be unknown.
        self.taken = False
        self.gives_up_at = float("inf")


class _Connection:
    """One connection, and whoever writes on it."""

    __slots__ = ("pipeline", "ring", "task")

    def __init__(self) -> None:
        self.pipeline: Pipeline | None = None
        self.ring = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def close(self) -> None:
        pipeline, self.pipeline = self.pipeline, None
        if pipeline is not None:
            with contextlib.suppress(psycopg.Error):
                await pipeline.aclose()


class GroupCommit:
    """One per event loop. `write` returns once the lines are durable."""

    def __init__(self, conninfo: str, *, batch: int = 256) -> None:
        self._conninfo = conninfo
        self._batch = batch
        self._waiting: list[_Write] = []
        self._lanes: list[_Connection] = []
        self._idle: list[_Connection] = []
        # Ids of lines on their way: another lane must not overtake them.
        self._away: set[str] = set()
        # Those that wait no longer than so.
        self._hurried: set[_Write] = set()
        self._timer: asyncio.TimerHandle | None = None
        # Backends that did not answer, and may yet do what they were told.
        self._given_up: list[int] = []
        # The last attempt found no database.
        self.database_down = False

    @property
    def waiting(self) -> int:
        """Writes that no commit has taken yet."""
        return len(self._waiting)

    async def write(self, *lines: Line, within: float | None = 2.0) -> list[Row | None]:
        """One row (or None) for each line, in order.

        Raises RecordUnavailable when the lines were not durable `within` seconds, and
        RecordUnsure when they may be or may become so.
        """
        unit = self._add(lines)
        if within is None:
            return await unit.done
        self._hurry(unit, within)
        try:
            return await unit.done
        finally:
            self._hurried.discard(unit)

    def submit(self, *lines: Line) -> asyncio.Future[list[Row | None]]:
        """Like `write`, without a time limit, for callers that do more than wait."""
        return self._add(lines).done

    def write_later(self, *lines: Line) -> None:
        """Write as soon as it can be done; nobody waits for it."""
        self.submit(*lines).add_done_callback(_note_failure)

    def _add(self, lines: Sequence[Line]) -> _Write:
        loop = asyncio.get_running_loop()
        if not self._lanes:
            self._lanes = [_Connection() for _ in range(LANES)]
            for lane in self._lanes:
                lane.task = loop.create_task(self._run(lane), name="journal")
                self._idle.append(lane)
        unit = _Write(lines, loop.create_future())
        self._waiting.append(unit)
        if len(self._idle) == LANES or (self._idle and len(self._waiting) >= WORTH):
            self._idle.pop().ring.set()
        return unit

    def _hurry(self, unit: _Write, within: float) -> None:
        """One timer for all: nearly always a unit is done long before."""
        loop = asyncio.get_running_loop()
        unit.gives_up_at = loop.time() + within
        self._hurried.add(unit)
        if self._timer is None or self._timer.when() > unit.gives_up_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(unit.gives_up_at, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for unit in [unit for unit in self._hurried if unit.gives_up_at <= loop.time()]:
            self._hurried.discard(unit)
            _give_up(unit)
        next_at = min((unit.gives_up_at for unit in self._hurried), default=None)
        self._timer = loop.call_at(next_at, self._look) if next_at else None

    async def aclose(self) -> None:
        for lane in self._lanes:
            if lane.task is not None:
                lane.task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await lane.task
            await lane.close()
        if self._timer is not None:
            self._timer.cancel()

    async def _run(self, lane: _Connection) -> None:
        while True:
            await lane.ring.wait()
            lane.ring.clear()
            await self._let_others_join()
            while self._waiting and (units := self._take()):
                ids: set[str] = set()
                for unit in units:
                    ids |= unit.ids
                self._away |= ids
                try:
                    await self._commit(lane, units)
                finally:
                    self._away -= ids
                if self._waiting:
                    await self._let_others_join()
            self._idle.append(lane)

    async def _let_others_join(self) -> None:
        # A commit costs about the same for one line as for ten: as long as each turn of the loop
        # brings another, it is worth another turn. A lone writer waits for one.
        seen = 0
        while len(self._waiting) > seen:
            seen = len(self._waiting)
            await asyncio.sleep(0)

    def _take(self) -> list[_Write]:
        """The next units that may share a transaction: no line concerns the same row twice."""
        taken: list[_Write] = []
        left: list[_Write] = []
        seen: set[Key] = set()
        most = min(self._batch, max(UNSPLIT, len(self._waiting) // LANES))
        for unit in self._waiting:
            if unit.done.done():
                continue
            overtakes = not self._away.isdisjoint(unit.ids)
            if overtakes or len(taken) >= most or not seen.isdisjoint(unit.keys):
                left.append(unit)
            else:
                unit.taken = True
                taken.append(unit)
            seen.update(unit.keys)
        self._waiting = left
        return taken

    async def _commit(self, lane: _Connection, units: list[_Write]) -> None:
        if not units:
            return
        began = time.monotonic()
        try:
            answers = await self._transaction(lane, units)
        except psycopg.OperationalError as error:
            await self._reconnect_later(lane, units, error)
        except psycopg.Error as error:
            await self._one_by_one(lane, units, error)
        else:
            self.database_down = False
            figures.COMMIT.note(time.monotonic() - began)
            for unit in units:
                if not unit.done.done():
                    unit.done.set_result(list(map(answers.get, unit.keys)))

    async def _one_by_one(
        self, lane: _Connection, units: list[_Write], error: psycopg.Error
    ) -> None:
        """One bad line must not take its neighbours with it."""
        if len(units) > 1:
            for unit in units:
                await self._commit(lane, [unit])
        elif not units[0].done.done():
            units[0].done.set_exception(error)

    async def _reconnect_later(
        self, lane: _Connection, units: list[_Write], error: psycopg.Error
    ) -> None:
        """The commit's fate is unknown: statements are idempotent by id, so ask again."""
        log.warning("journal: the database went away: %s", str(error).strip())
        self.database_down = True
        await lane.close()
        self._waiting[:0] = [unit for unit in units if not unit.done.done()]
        await asyncio.sleep(0.1)

    async def _transaction(self, lane: _Connection, units: list[_Write]) -> dict[Key, Row]:
        pipeline = await self._connected(lane)
        lines: dict[Statement, tuple[list[str], list[bytes]]] = {}
        for unit in units:
            for (statement, id_), json in zip(unit.keys, unit.json, strict=True):
                ids, jsons = lines.setdefault(statement, ([], []))
                ids.append(id_)
                jsons.append(json)
        statements = sorted(lines, key=_order)
        sheets = []
        for statement in statements:
            ids, jsons = lines[statement]
            given = [b"[%b]" % b",".join(jsons)]
            if statement.bounded:
                given += min(ids).encode(), max(ids).encode()
            sheets.append((statement.sql, given))
        try:
            async with asyncio.timeout(ANSWER_S):
                answers = await pipeline.transact(sheets)
        except TimeoutError:
            self._given_up.append(pipeline.give_up())
            raise psycopg.OperationalError("the database does not answer") from None
        found: dict[Key, Row] = {}
        for statement, rows in zip(statements, answers, strict=True):
            for row in rows:
                found[statement, str(row[0])] = row
        return found

    async def _connected(self, lane: _Connection) -> Pipeline:
        if lane.pipeline is not None and lane.pipeline.is_over:
            await lane.close()
        if lane.pipeline is None:
            connection = await AsyncConnection.connect(
                self._conninfo,
                autocommit=True,
                client_encoding="utf8",
                application_name=NAME,
                options=PLANS,
                **KEEPALIVE,
            )
            await self._end_backends(connection)
            lane.pipeline = Pipeline(connection)
        return lane.pipeline

    async def _end_backends(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Before what they did not answer is asked for again."""
        if numbers := self._given_up:
            await connection.execute(END_BACKENDS, [numbers])
            self._given_up = [number for number in self._given_up if number not in numbers]


def _note_failure(done: asyncio.Future[list[Row | None]]) -> None:
    if not done.cancelled() and done.exception() is not None:
        log.error("journal: not written: %s", done.exception())


def _give_up(unit: _Write) -> None:
    if not unit.done.done():
        unit.done.set_exception(
            RecordUnsure("Whether the record was written is not known; nothing was sent.")
            if unit.taken
            else RecordUnavailable("The record could not be written in time; nothing was sent.")
        )
