"""Once a second, in every worker: what a lost message or a dead process left behind."""

from __future__ import annotations

import logging
import threading

from django.db import close_old_connections

from approvals.services import expire
from calls.services import end_the_late, end_the_lost
from calls.turns import whose_turn
from calls.work import work

log = logging.getLogger(__name__)

EVERY_S = 1.0
# A ring that was not lost has been answered by then.
OVERDUE_S = 1.0
# Calls that the sweep itself may have under way: the broker is a convenience, not a need.
AT_ONCE = 32


class Sweep:
    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._room = threading.Semaphore(AT_ONCE)

    def start(self) -> None:
        threading.Thread(target=self._run, name="sweep", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_S):
            try:
                self._once()
            except Exception:
                log.exception("The sweep failed; it goes on in a second.")
            finally:
                close_old_connections()

    def _once(self) -> None:
        expire()
        end_the_late()
        end_the_lost()
        for _call in whose_turn(most=AT_ONCE, older_s=OVERDUE_S):
            if not self._room.acquire(blocking=False):
                break
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            work()
        finally:
            self._room.release()
            close_old_connections()
