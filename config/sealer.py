"""Every SEAL_EVERY_S, in every worker: entries get their leaves. One of the workers does it."""

from __future__ import annotations

import logging
import threading
import time

from django.conf import settings
from django.db import close_old_connections

from audit.anchors import keep
from audit.models import Checkpoint
from audit.sealing import BATCH, seal

log = logging.getLogger(__name__)

ANCHOR_EVERY_S = 60.0


class Sealer:
    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._anchored_at, self._anchored = float("-inf"), 0

    def start(self) -> None:
        threading.Thread(target=self._run, name="sealer", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(settings.SEAL_EVERY_S):
            try:
                while seal() == BATCH:
                    pass
                self.anchor()
            except Exception:
                log.exception("Sealing failed; it goes on in a second.")
            finally:
                close_old_connections()

    def anchor(self) -> None:
        if time.monotonic() < self._anchored_at + ANCHOR_EVERY_S:
            return
        newest = Checkpoint.objects.first()
        if newest is not None and newest.pk != self._anchored:
            keep(newest)
            self._anchored_at, self._anchored = time.monotonic(), newest.pk
