"""Whether the database answers at all, asked beside those who wait for it.

A statement that takes long says nothing: it may have much to do, or wait for another. So one thread
asks for something that costs nothing, on a new connection, and goes on until it is answered. No
thread asks while nobody waits for long.
"""

from __future__ import annotations

import contextlib
import threading
import time
from functools import cache
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from psycopg.abc import PQGen

RV = TypeVar("RV")

# Who has waited for so long begins to wonder.
SUSPECT_S = 0.3
ANSWER_S = 2.0
PAUSE_S = 0.1


class Pulse:
    def __init__(self, conninfo: str, *, silent_s: float) -> None:
        self._conninfo, self._silent_s = conninfo, silent_s
        self._lock = threading.Lock()
        # On the monotonic clock; None: nobody asks, or it was answered.
        self._unanswered_since: float | None = None

    def is_silent(self, waited_s: float) -> bool:
        """Whether the database has answered nobody since this caller began to wait."""
        if waited_s > SUSPECT_S:
            self._ask_on()
        since = self._unanswered_since
        return since is not None and time.monotonic() - since > self._silent_s

    def _ask_on(self) -> None:
        with self._lock:
            if self._unanswered_since is None:
                self._unanswered_since = time.monotonic()
                threading.Thread(target=self._run, name="pulse", daemon=True).start()

    def _run(self) -> None:
        while not self._answers():
            time.sleep(PAUSE_S)
        self._unanswered_since = None

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.Error, OSError):
            with _Brief.connect(self._conninfo, autocommit=True, connect_timeout=2) as connection:
                connection.execute("SELECT 1")
            return True
        return False


class _Brief(psycopg.Connection[Any]):
    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        return super().wait(gen, interval, ANSWER_S)


@cache
def pulse() -> Pulse:
    """The pulse of this process's database."""
    return Pulse(settings.DATABASE_URL, silent_s=settings.DATABASE_SILENT_S)
