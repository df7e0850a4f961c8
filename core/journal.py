"""Group commit: what arrives while one commit is in flight shares the next.

A statement takes one JSON array and returns rows whose first column is the `id` of the line it
concerns. Lines of one `write` stand or fall together; lines of different writes share a
transaction for speed only: if it fails, each is tried again alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import psycopg
from psycopg.rows import tuple_row

from core.errors import RecordUnavailable, RecordUnsure

log = logging.getLogger(__name__)

# The statements look up a handful of rows by key, whatever the tables grow to: planned once, and
# never with a scan that was right only while a table was empty.
PLANS = (
    "-c plan_cache_mode=force_generic_plan -c jit=off "
    "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
)

Row = tuple[Any, ...]
Line = tuple["Statement", Mapping[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """`sql` has one `%s`, a JSON array of lines; `order` places it within a transaction."""

    name: str
    sql: str
    order: int


@dataclass(slots=True, eq=False)
class _Unit:
    lines: Sequence[Line]
    done: asyncio.Future[list[Row | None]]
    # Part of a transaction, whose fate may be unknown.
    taken: bool = False
    ids: frozenset[tuple[Statement, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = frozenset((statement, str(line["id"])) for statement, line in self.lines)


class Journal:
    """One per event loop. `write` returns once the lines are durable."""

    def __init__(self, conninfo: str, *, batch: int = 256) -> None:
        self._conninfo = conninfo
        self._batch = batch
        self._waiting: list[_Unit] = []
        self._ring = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connection: psycopg.AsyncConnection[Row] | None = None
        # The last attempt found no database.
        self.is_away = False

    async def write(self, *lines: Line, within: float | None = 2.0) -> list[Row | None]:
        """One row (or None) for each line, in order.

        Raises RecordUnavailable when the lines were not durable `within` seconds, and
        RecordUnsure when they may be or may become so.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="journal")
        unit = _Unit(lines, asyncio.get_running_loop().create_future())
        self._waiting.append(unit)
        self._ring.set()
        if within is None:
            return await unit.done
        timer = asyncio.get_running_loop().call_later(within, _give_up, unit)
        try:
            return await unit.done
        finally:
            timer.cancel()

    def write_later(self, *lines: Line) -> None:
        """Write as soon as it can be done; nobody waits for it."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="journal")
        unit = _Unit(lines, asyncio.get_running_loop().create_future())
        unit.done.add_done_callback(_note_failure)
        self._waiting.append(unit)
        self._ring.set()

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._connection is not None:
            await self._connection.close()

    async def _run(self) -> None:
        while True:
            await self._ring.wait()
            self._ring.clear()
            while self._waiting:
                await self._let_others_join()
                await self._commit(self._take())

    async def _let_others_join(self) -> None:
        # A commit costs about the same for one line as for ten: as long as each turn of the loop
        # brings another, it is worth another turn. A lone writer waits for one.
        seen = 0
        while len(self._waiting) > seen:
            seen = len(self._waiting)
            await asyncio.sleep(0)

    def _take(self) -> list[_Unit]:
        """The next units that may share a transaction: no line concerns the same row twice."""
        taken: list[_Unit] = []
        left: list[_Unit] = []
        seen: set[tuple[Statement, str]] = set()
        for unit in self._waiting:
            if unit.done.done():
                continue
            if len(taken) >= self._batch or not seen.isdisjoint(unit.ids):
                left.append(unit)
            else:
                unit.taken = True
                taken.append(unit)
            seen |= unit.ids
        self._waiting = left
        return taken

    async def _commit(self, units: list[_Unit]) -> None:
        if not units:
            return
        try:
            answers = await self._transaction(units)
        except psycopg.OperationalError as error:
            await self._reconnect_later(units, error)
        except psycopg.Error as error:
            await self._one_by_one(units, error)
        else:
            self.is_away = False
            for unit in units:
                if not unit.done.done():
                    unit.done.set_result(
                        [answers.get((s, str(row["id"]))) for s, row in unit.lines]
                    )

    async def _one_by_one(self, units: list[_Unit], error: psycopg.Error) -> None:
        """One bad line must not take its neighbours with it."""
        if len(units) > 1:
            for unit in units:
                await self._commit([unit])
        elif not units[0].done.done():
            units[0].done.set_exception(error)

    async def _reconnect_later(self, units: list[_Unit], error: psycopg.Error) -> None:
        """The commit's fate is unknown: statements are idempotent by id, so ask again."""
        log.warning("journal: the database went away: %s", str(error).strip())
        self.is_away = True
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                await self._connection.close()
        self._connection = None
        self._waiting[:0] = [unit for unit in units if not unit.done.done()]
        await asyncio.sleep(0.1)

    async def _transaction(self, units: list[_Unit]) -> dict[tuple[Statement, str], Row]:
        connection = await self._connected()
        sheets: dict[Statement, list[Mapping[str, Any]]] = {}
        for unit in units:
            for statement, line in unit.lines:
                sheets.setdefault(statement, []).append(line)
        ordered = sorted(sheets.items(), key=lambda sheet: sheet[0].order)
        return await _executed(connection, ordered)

    async def _connected(self) -> psycopg.AsyncConnection[Row]:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(
                self._conninfo,
                autocommit=True,
                prepare_threshold=1,
                row_factory=tuple_row,
                connect_timeout=2,
                application_name="countersign journal",
                options=PLANS,
            )
        return self._connection


def _note_failure(done: asyncio.Future[list[Row | None]]) -> None:
    if not done.cancelled() and done.exception() is not None:
        log.error("journal: not written: %s", done.exception())


def _give_up(unit: _Unit) -> None:
    if not unit.done.done():
        unit.done.set_exception(
            RecordUnsure("Whether the record was written is not known; nothing was sent.")
            if unit.taken
            else RecordUnavailable("The record could not be written in time; nothing was sent.")
        )


async def _executed(
    connection: psycopg.AsyncConnection[Row],
    sheets: list[tuple[Statement, list[Mapping[str, Any]]]],
) -> dict[tuple[Statement, str], Row]:
    """All sheets in one transaction and one round trip: what a pipeline sends before it
    synchronises is one implicit transaction."""
    async with contextlib.AsyncExitStack() as stack:
        if len(sheets) > 1:
            await stack.enter_async_context(connection.pipeline())
        cursors = [
            (statement, await connection.execute(statement.sql, (orjson.dumps(lines).decode(),)))
            for statement, lines in sheets
        ]
    answers: dict[tuple[Statement, str], Row] = {}
    for statement, cursor in cursors:
        for row in await cursor.fetchall():
            answers[statement, str(row[0])] = row
    return answers
