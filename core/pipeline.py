"""Prepared statements on one PostgreSQL connection: many in one transaction and one round trip.

What a pipeline sends before it synchronises is one implicit transaction. psycopg connects; from
then on its binding of libpq is driven by hand, because its own pipelines and cursors cost more time
than all else that a batch of the journal needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import psycopg
from psycopg import errors, pq

# How often is looked by oneself whether the database has answered.
LOOK_S = 0.5

Row = tuple[Any, ...]
# A statement, and its parameters.
Prepared = Sequence[tuple[str, Sequence[bytes]]]

# What our statements answer with, by type; everything else stays the text that it is.
_LOADERS: dict[int, Callable[[bytes], Any]] = {
    16: b"t".__eq__,
    **dict.fromkeys((20, 21, 23), int),
    **dict.fromkeys((114, 3802), orjson.loads),
}


class Pipeline:
    """Belongs to the running loop. One `transact` at a time; after an OperationalError it is
    over."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._link = connection.pgconn
        self._link.nonblocking = 1
        self._link.enter_pipeline_mode()
        # Of what is prepared, by its SQL.
        self._names: dict[str, bytes] = {}
        self._results: list[pq.abc.PGresult] = []
        self._done: asyncio.Future[list[pq.abc.PGresult]] | None = None
        self._loop = asyncio.get_running_loop()
        self._socket = self._link.socket
        self._loop.add_reader(self._socket, self._readable)
        self._writes = False
        self._timer = self._loop.call_later(LOOK_S, self._look)

    async def transact(self, sheets: Prepared) -> list[list[Row]]:
        """The rows of each sheet. Raises what the database says, and then nothing was done."""
        self._done = self._loop.create_future()
        unprepared = self._send(sheets)
        results = await self._done
        for (sql, name), result in zip(unprepared.items(), results, strict=False):
            # Prepared for good, whatever becomes of the transaction.
            if result.status == pq.ExecStatus.COMMAND_OK:
                self._names[sql] = name
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result)
        return [_rows(result) for result in results[len(unprepared) :]]

    def give_up(self) -> int:
        """Whatever comes of it now, nobody reads it. Returns the backend's process number."""
        number = self._link.backend_pid
        self._deaf()
        self._link.finish()
        return number

    async def aclose(self) -> None:
        self._deaf()
        await self._connection.close()

    def _send(self, sheets: Prepared) -> dict[str, bytes]:
        link = self._link
        unprepared: dict[str, bytes] = {}
        for sql, _ in sheets:
            if sql not in self._names and sql not in unprepared:
                unprepared[sql] = b"s%d" % (len(self._names) + len(unprepared))
                link.send_prepare(unprepared[sql], numbered(sql).encode())
        for sql, given in sheets:
            link.send_query_prepared(self._names.get(sql) or unprepared[sql], given)
        link.pipeline_sync()
        self._write()
        return unprepared

    def _write(self) -> None:
        """libpq keeps what the socket does not take at once."""
        has_more = bool(self._link.flush())
        if has_more and not self._writes:
            self._loop.add_writer(self._socket, self._writable)
        elif self._writes and not has_more:
            self._loop.remove_writer(self._socket)
        self._writes = has_more

    def _writable(self) -> None:
        try:
            self._write()
        except psycopg.Error as error:
            self._broken(error)

    def _readable(self) -> None:
        try:
            self._link.consume_input()
            self._take()
        except psycopg.Error as error:
            self._broken(error)

    def _look(self) -> None:
        """libuv listens no more to a socket that was reset, and tells nobody."""
        self._timer = self._loop.call_later(LOOK_S, self._look)
        if self._done is not None and not self._done.done():
            self._readable()

    def _take(self) -> None:
        link, ends = self._link, 0
        while ends < 2 and not link.is_busy():
            result = link.get_result()
            if result is None:
                # Each statement's results end with one; two in a row, and there is no more.
                ends += 1
                continue
            ends = 0
            if result.status != pq.ExecStatus.PIPELINE_SYNC:
                self._results.append(result)
                continue
            results, self._results = self._results, []
            if self._done is not None and not self._done.done():
                self._done.set_result(results)

    def _broken(self, error: psycopg.Error) -> None:
        self._deaf()
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)

    def _deaf(self) -> None:
        """Stops watching the socket before it closes: its number may be reused at once."""
        self._timer.cancel()
        if self._socket >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket = -1

    @property
    def is_over(self) -> bool:
        return self._socket < 0 or self._connection.closed


def numbered(sql: str) -> str:
    """With PostgreSQL's own names of parameters."""
    first, *rest = sql.split("%s")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, start=1))


def _rows(result: pq.abc.PGresult) -> list[Row]:
    # Loops and no comprehensions, each of which is a call.
    loaders = []
    for column in range(result.nfields):
        loaders.append(_LOADERS.get(result.ftype(column), bytes.decode))
    rows: list[Row] = []
    for number in range(result.ntuples):
        row = []
        for column, load in enumerate(loaders):
            value = result.get_value(number, column)
            row.append(None if value is None else load(value))
        rows.append(tuple(row))
    return rows
