"""Once a second, in every worker: new entries and due steps become deliveries, which are sent.

In a thread of its own: the sweep of calls waits for no mail.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta
from uuid import UUID

from django.db import close_old_connections

from audit.origins import is_at_home
from audit.rollback import has_gone_back
from notifications import deliveries, ringing, sending
from notifications.cursor import read_entries

log = logging.getLogger(__name__)

EVERY_S = 1.0
# A ring that was not lost has been answered by then.
OVERDUE = timedelta(seconds=2)
# Nothing but time makes a reminder due.
REMIND_EVERY_S = 10.0


class NotificationSweep:
    def __init__(self) -> None:
        self._reminded_at = float("-inf")
        # When the calls expire that a reminder was looked at for.
        self._reminded: dict[UUID, datetime] = {}

    def start(self) -> None:
        threading.Thread(target=self._run, name="notification sweep", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(EVERY_S)
            try:
                self.look()
            except Exception:
                log.exception("Notifications were not looked at; it goes on in a second.")
            finally:
                close_old_connections()

    def look(self) -> None:
        if not is_at_home() or has_gone_back():
            # Of a copy nobody is told anything.
            return
        made = read_entries() + deliveries.create_escalated() + deliveries.create_for_delegates()
        if made + self._remind():
            ringing.ring()
        if deliveries.count_overdue(OVERDUE):
            sending.send_in_background()

    def _remind(self) -> int:
        now = time.monotonic()
        if now - self._reminded_at < REMIND_EVERY_S:
            return 0
        self._reminded_at = now
        return deliveries.create_reminders(self._reminded)
