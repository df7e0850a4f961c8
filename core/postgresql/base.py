from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool, PoolTimeout

from core.connections import is_dead
from core.outage import CommitUnsure
from core.pulse import pulse

# What PostgreSQL says with another class than these, it says of a transaction that it undid.
_GONE = ("08", "57", "58", "XX")
# Many may want a connection at once. Nobody gets one from a database that is silent.
POOL_S = 10.0


class FirstLook:
    """A look that this process takes before anything else uses the database."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._look: Callable[[], bool] | None = None
        self._is_looking = False

    def require(self, look: Callable[[], bool]) -> None:
        """`look` is asked for as long as it returns False."""
        self._look = look

    def take(self) -> None:
        if self._look is None:
            return
        # Others wait; its own connection is let through.
        with self._lock:
            if self._look is None or self._is_looking:
                return
            self._is_looking = True
            try:
                if self._look():
                    self._look = None
            finally:
                self._is_looking = False


first_look = FirstLook()


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes no connection from its pool that the server has ended, and waits for none in vain."""

    def connect(self) -> None:
        first_look.take()
        super().connect()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        began = time.monotonic()
        while True:
            try:
                connection = super().get_new_connection(conn_params)
            except PoolTimeout:
                waited_s = time.monotonic() - began
                if waited_s > POOL_S or pulse().is_silent(waited_s):
                    raise
            else:
                if not (self.pool and is_dead(connection)):
                    return connection
                self.pool.putconn(connection)

    def _commit(self) -> None:
        try:
            super()._commit()  # type: ignore[misc]
        except (DatabaseError, InterfaceError) as error:
            if _is_refused(error):
                raise
            raise CommitUnsure(str(error)) from error


def all_pools() -> list[ConnectionPool[Any]]:
    """The pools of this process; each is made when it is first used."""
    return [*DatabaseWrapper._connection_pools.values()]  # type: ignore[attr-defined]


def _is_refused(error: Exception) -> bool:
    state = getattr(error.__cause__, "sqlstate", None) or ""
    return bool(state) and not state.startswith(_GONE)
