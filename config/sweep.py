"""Once a second, in every worker: what a lost message or a dead process left behind."""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime

from django.conf import settings
from django.db import close_old_connections, connection

from accounts.single_person import end_if_refused
from approvals.eligibility import end_single_person_mode
from approvals.reevaluation import Reevaluation
from approvals.services import expire, send_denials
from approvals.widening import widen
from audit.origins import is_at_home
from audit.rollback import has_gone_back
from calls.export_worker import ExportWorker
from calls.queue.scheduling import whose_turn
from calls.queue.stale_leases import StaleLeases
from calls.queue.upstream_tasks import take_over
from calls.queue.worker import follow, is_leaving, work
from calls.running.runtime import background
from calls.services import end_the_late, end_the_lost

log = logging.getLogger(__name__)

EVERY_S = 1.0
# A ring that was not lost has been answered by then.
OVERDUE_S = 1.0
# A round that takes longer, or comes later, says that the database was away for everybody.
SLOW_S = 2.0
# Longer than any round waits for a database that is away.
STANDS_AFTER_S = 30.0
# Calls that the sweep itself may have under way: the broker is a convenience, not a need.
AT_ONCE = 32


class Sweep:
    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._room = threading.Semaphore(AT_ONCE)
        self._looked_at = self._turned_at = time.monotonic()
        # The database's time at the last look.
        self._clock: datetime | None = None
        self._spare_until = 0.0
        self._silence = StaleLeases()
        self._reevaluation = Reevaluation()
        self._exports = ExportWorker()

    def start(self) -> None:
        threading.Thread(target=self._run, name="sweep", daemon=True).start()

    @property
    def stands(self) -> bool:
        """It has not turned for long, whatever it is waiting for."""
        return time.monotonic() - self._turned_at > STANDS_AFTER_S

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        # From here on what dead processes left behind is taken over, also if no call comes.
        background()
        while not self._stopping.wait(EVERY_S):
            self._turned_at = time.monotonic()
            try:
                self._once()
            except Exception:
                log.exception("The sweep failed; it goes on in a second.")
            finally:
                close_old_connections()

    def _once(self) -> None:
        if not is_at_home() or has_gone_back():
            # What stands here as waiting may have been sent: nothing can be said of it yet.
            return
        end_if_refused()
        end_single_person_mode()
        send_denials()
        expire()
        widen()
        end_the_late()
        if self._leases_could_be_renewed():
            end_the_lost()
            self._take_over_tasks()
        self._silence.look()
        self._reevaluation.look()
        self._exports.look()
        for _call in whose_turn(most=AT_ONCE, older_s=OVERDUE_S):
            if not self._room.acquire(blocking=False):
                break
            threading.Thread(target=self._work, daemon=True).start()

    def _take_over_tasks(self) -> None:
        # What this process lets go of when it stops is for others.
        while not is_leaving() and (sending := take_over(owner=background().engine.owner)):
            threading.Thread(target=follow, args=(sending,), daemon=True).start()

    def _leases_could_be_renewed(self) -> bool:
        """Not if we could not look ourselves, or the database's clock was put forward: then whoever
        runs calls gets a lease's time."""
        now, clock = time.monotonic(), database_time()
        went_on_s = (clock - (self._clock or clock)).total_seconds()
        if max(now - self._looked_at, went_on_s) > EVERY_S + SLOW_S:
            self._spare_until = now + settings.LEASE_S
        self._looked_at, self._clock = now, clock
        return now > self._spare_until

    def _work(self) -> None:
        try:
            work()
        finally:
            self._room.release()
            close_old_connections()


def database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (found,) = cursor.fetchone()
        assert isinstance(found, datetime)
        return found
