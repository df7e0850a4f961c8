"""Connections to a database that may have ended them, or that may not answer at all.

PostgreSQL says that it ended a connection on its socket, where nothing else is to be read between
two statements: to look there costs no round trip. One that hangs says nothing, so whoever waits
for it has a deadline here: on an event loop each statement has one; a thread, which may have asked
for much, waits as long as the database answers others.
"""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import psycopg
from psycopg import waiting
from psycopg.abc import PQGen
from psycopg_pool import AsyncConnectionPool

from core.pulse import pulse

RV = TypeVar("RV")

# Of each statement on an event loop.
ANSWER_S = 2.0
# How often a thread that waits looks whether it still may.
LOOK_S = 0.1
# For whatever the network loses: the other end is gone, or no longer reached.
KEEPALIVE: dict[str, Any] = {
    "connect_timeout": 2,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
}

# Of connections whose statements look up a handful of rows by key, whatever the tables grow to:
# each is planned once, for any parameters, and never with a scan that was right only while a table
# was empty. To plan, with all months of a table, takes longer than to look up.
PLANS = (
    "-c plan_cache_mode=force_generic_plan -c jit=off -c max_parallel_workers_per_gather=0 "
    "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
)

# Of Django's connections, which outlive the sizes that tables have when triggers first look at
# them; and pages read out of order cost hardly more, on other disks than the default is made for.
PAGES_SETTINGS = {"plan_cache_mode": "force_custom_plan", "random_page_cost": "1.1"}
PAGES = " ".join(f"-c {name}={value}" for name, value in PAGES_SETTINGS.items())

_statement_s: ContextVar[float] = ContextVar("statement_s", default=float("inf"))


class DatabaseUnanswered(psycopg.OperationalError):
    """The database did not answer in time; whether it did what was asked is not known."""


@contextmanager
def each_within(seconds: float) -> Iterator[None]:
    """No statement of this thread is waited for any longer, even if the database answers others."""
    token = _statement_s.set(seconds)
    try:
        yield
    finally:
        _statement_s.reset(token)


def is_dead(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether the server has ended this idle connection; closes it then."""
    try:
        while not connection.closed and _has_something_to_read(connection.pgconn.socket):
            connection.pgconn.consume_input()
    except psycopg.Error:
        connection.pgconn.finish()
    return connection.closed


def _has_something_to_read(socket: int) -> bool:
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))


class DatabaseConnection(psycopg.Connection[Any]):
    """A connection for threads. One that timed out is closed, since a late answer could be
    mistaken."""

    def wait(self, gen: PQGen[RV], interval: float = LOOK_S, timeout: float | None = None) -> RV:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(_patiently(gen), LOOK_S)
        except DatabaseUnanswered:
            self.pgconn.finish()
            raise


def _patiently(gen: PQGen[RV]) -> Generator[Any, Any, RV]:
    """The same, unless the database falls silent meanwhile."""
    began = time.monotonic()
    _look(began)
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready:
                _look(began)
            wanted = gen.send(ready)
    except StopIteration as end:
        value: RV = end.value
        return value


def _look(began: float) -> None:
    waited_s = time.monotonic() - began
    if pulse().is_silent(waited_s) or waited_s > _statement_s.get():
        raise DatabaseUnanswered("The database does not answer.")


class AsyncConnection(psycopg.AsyncConnection[Any]):
    """A connection for event loops. psycopg would wait for the server to cancel a query."""

    async def wait(
        self, gen: PQGen[RV], interval: float = LOOK_S, timeout: float | None = None
    ) -> RV:
        # Whoever gives a time of their own waits for no answer: only this loop can be late.
        seconds = ANSWER_S + LOOK_S + (timeout or 0.0)
        try:
            async with asyncio.timeout(seconds):
                return await waiting.wait_async(
                    gen, self.pgconn.socket, interval=interval, timeout=timeout
                )
        except TimeoutError:
            self.pgconn.finish()
            raise DatabaseUnanswered("The database does not answer.") from None
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise


class Pool(AsyncConnectionPool[AsyncConnection]):
    """Gives no connection that the server has ended."""

    async def getconn(self, timeout: float | None = None) -> AsyncConnection:
        while is_dead(connection := await super().getconn(timeout)):
            await self.putconn(connection)
        return connection
