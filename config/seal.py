"""The sealer: a process of its own, since it alone has the key that signs and the right to seal.

Its DATABASE_URL is that of the sealer's role; it needs neither the installation's secret nor the
broker.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402 once Django is ready
from django.db import close_old_connections  # noqa: E402

from audit.anchors import keep, kept_in, remember, remembered_in  # noqa: E402
from audit.models import Checkpoint  # noqa: E402
from audit.sealing import BATCH, Inconsistent, Sealing, require  # noqa: E402
from audit.signing import CannotSign  # noqa: E402
from config.older_database import require_database  # noqa: E402
from config.probes import serve_probes  # noqa: E402
from config.readiness import say_ready  # noqa: E402
from core.figures import sealing_failures  # noqa: E402

log = logging.getLogger(__name__)

ANCHOR_EVERY_S = 60.0
# So long without a round that went well.
STANDS_AFTER_S = 30.0


class Sealer:
    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._anchored_at, self._anchored = float("-inf"), 0
        self._sealing = Sealing()
        # From what was signed here last: looked at once, since no leaf of a sealed record changes.
        self._goes_on = False
        self._sealed_at = time.monotonic()

    def find_fault(self) -> str:
        """Why nothing is sealed; empty if all is that is to be."""
        late_s = STANDS_AFTER_S + 2 * settings.SEAL_EVERY_S
        return "" if time.monotonic() - self._sealed_at < late_s else "nothing is sealed"

    def run(self) -> None:
        """Seals until stopped. Raises CannotSign at once, since waiting does not help."""
        while not self.stopping.wait(settings.SEAL_EVERY_S):
            try:
                self.once()
            except CannotSign:
                raise
            except Inconsistent as error:
                sealing_failures["inconsistent"] += 1
                log.error("%s", error)
            except Exception:
                sealing_failures["failed"] += 1
                log.exception("Sealing failed; it goes on in a second.")
            finally:
                close_old_connections()

    def once(self) -> None:
        if not self._goes_on:
            self._require_kept()
        while sealed := self._sealing.batch():
            if newest := Checkpoint.objects.first():
                remember(newest)
            if sealed < BATCH or self.stopping.is_set():
                break
        self._sealed_at = time.monotonic()
        self.anchor()

    def _require_kept(self) -> None:
        for path in (remembered_in(), Path(settings.ANCHOR_FILE)):
            for note in kept_in(path)[:1]:
                require(note)
        self._goes_on = True

    def anchor(self) -> None:
        if time.monotonic() < self._anchored_at + ANCHOR_EVERY_S:
            return
        newest = Checkpoint.objects.first()
        if newest is not None and newest.pk != self._anchored:
            keep(newest)
            self._anchored_at, self._anchored = time.monotonic(), newest.pk


def main() -> None:
    require_database(with_calls=False)
    sealer = Sealer()
    serve_probes("seal", sealer.find_fault)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sealer.stopping.set())
    say_ready()
    try:
        sealer.run()
    except CannotSign as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
