"""A worker that lives and takes no calls replaces itself: it ends, and is started again.

Messages may stop coming to a worker that looks well, and threads may hang; nothing else notices.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from calls.queue.scheduling import whose_turn
from calls.queue.worker import since_claim_s, under_way

log = logging.getLogger(__name__)

# With so much to do, taking nothing more is no wonder.
BUSY = 32
# Beyond what calls are given to end.
PATIENCE_S = 12.0


class Watchdog:
    def start(self) -> None:
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def _run(self) -> None:
        was_deaf = False
        while True:
            time.sleep(settings.DEAF_AFTER_S / 6)
            try:
                deaf = self._is_deaf()
            except DatabaseError as error:
                log.warning("watchdog: %s", str(error).strip())
            else:
                # Right after a pause calls wait, too, until they are looked for.
                if deaf and was_deaf:
                    self._replace()
                    return
                was_deaf = deaf
            finally:
                close_old_connections()

    def _is_deaf(self) -> bool:
        if since_claim_s() < settings.DEAF_AFTER_S or under_way() >= BUSY:
            return False
        return bool(whose_turn(most=1, older_s=settings.DEAF_AFTER_S / 3))

    def _replace(self) -> None:
        waited = settings.DEAF_AFTER_S
        log.error("Calls wait, and this worker took none for %g s: it starts anew.", waited)
        os.kill(os.getpid(), signal.SIGTERM)
        # What hangs may hang on: nobody waits for it longer than for calls.
        time.sleep(settings.STOP_WITHIN_S + PATIENCE_S)
        os._exit(1)
