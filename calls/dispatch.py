"""Ringing for a worker. The row says what is to be done; a lost ring costs a second.

A broker may hang, and its client waits for it without end: one thread of its own rings, and nobody
else waits.
"""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from uuid import UUID

from celery import Task
from django.db import transaction
from kombu.exceptions import OperationalError

from calls.tasks import run_call

log = logging.getLogger(__name__)

# To find out takes seconds: nobody is rung for at a broker that was just away.
AWAY_S = 5.0
# So many may wait to be rung for; of the others the sweep takes care.
QUEUE_MAX = 1000
# A process that ends lets what it asked for be rung.
LAST_S = 1.0


class WorkerNotifier:
    """Sends messages of one task, whose arguments say at most what it is about."""

    def __init__(self, task: Task[..., None]) -> None:
        self._task = task
        self._waiting: queue.Queue[tuple[str, ...] | None] = queue.Queue(QUEUE_MAX)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._away_until = 0.0

    def notify(self, *about: str) -> None:
        self._start()
        try:
            self._waiting.put_nowait(about)
        except queue.Full:
            log.debug("%s %s: not rung for, the sweep will find it", self._task.name, about)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ringing", daemon=True)
                self._thread.start()
                atexit.register(self._finish, self._thread)

    def _finish(self, thread: threading.Thread) -> None:
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return
        thread.join(LAST_S)

    def _run(self) -> None:
        while (about := self._waiting.get()) is not None:
            if time.monotonic() >= self._away_until:
                self._ring(about)

    def _ring(self, about: tuple[str, ...]) -> None:
        name = self._task.name
        try:
            self._task.apply_async(about, retry=False)
        except OperationalError as error:
            self._away_until = time.monotonic() + AWAY_S
            said = "%s %s: the broker is away, the sweep will find it: %s"
            log.warning(said, name, about, error)
        except Exception:
            log.exception("%s %s: not rung for, the sweep will find it", name, about)


_notifier = WorkerNotifier(run_call)


def notify(call_id: UUID) -> None:
    _notifier.notify(str(call_id))


def notify_on_commit(call_id: UUID) -> None:
    transaction.on_commit(lambda: notify(call_id))
