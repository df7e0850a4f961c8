"""Preparing exports of the audit log in a worker: here, since a search for a text looks into calls.

The sweep looks once a second (config/sweep.py): which exports wait, rows say, and no message.
"""

from __future__ import annotations

import logging
import threading

from django.db import close_old_connections

from audit import export_jobs
from audit.models import Export
from calls.content.payloads import containing
from calls.queue.worker import is_leaving

log = logging.getLogger(__name__)

# Of one worker: most of the work is Python's, which calls take part in.
AT_ONCE = 2


class ExportWorker:
    def __init__(self) -> None:
        self._room = threading.Semaphore(AT_ONCE)

    def look(self) -> None:
        """Begins with what waits, in threads of its own."""
        while not is_leaving() and self._room.acquire(blocking=False):
            export = export_jobs.take()
            if export is None:
                self._room.release()
                return
            # No daemon: a process that ends gives back what it has not finished.
            threading.Thread(target=self._prepare, args=(export,), name="export").start()

    def _prepare(self, export: Export) -> None:
        try:
            export_jobs.prepare(export, containing, is_leaving)
        except Exception as error:
            log.warning("%s: prepared further in a minute: %s", export, error)
        finally:
            self._room.release()
            close_old_connections()
