import logging.config
import os
import threading
from typing import Any

from celery import Celery
from celery.signals import (
    beat_init,
    setup_logging,
    worker_init,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("countersign")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

_leaving, _left = threading.Lock(), threading.Event()


@setup_logging.connect
def configure_logging(**_: Any) -> None:
    """In place of Celery's own formats."""
    logging.config.dictConfig(settings.LOGGING)


@worker_init.connect
def check_database(**_: Any) -> None:
    # Once Django is ready, which this module makes it.
    from config.older_database import require_database

    require_database()


@beat_init.connect
def begin_beat(**_: Any) -> None:
    from config import beat
    from config.probes import serve_probes

    serve_probes("beat", beat.find_fault)


@worker_ready.connect
def begin(**_: Any) -> None:
    # Celery offers no other hook; all need the worker's process, not its messages. Imported here,
    # since this module is what makes Django ready.
    from calls.queue.worker import find_fault
    from config import telemetry
    from config.attendant import Attendant
    from config.older_database import keep_position
    from config.probes import serve_probes
    from config.readiness import say_ready
    from config.sweep import Sweep
    from config.watchdog import Watchdog
    from notifications.sweeping import NotificationSweep

    keep_position()
    sweep = Sweep()
    # First: it names the process.
    serve_probes("worker", lambda: "the sweep stands" if sweep.stands else find_fault())
    telemetry.start()
    sweep.start()
    NotificationSweep().start()
    Watchdog().start()
    Attendant().start()
    say_ready()


@worker_shutting_down.connect
def begin_to_leave(**_: Any) -> None:
    # In a signal's handler, which must not wait.
    threading.Thread(target=_drain, name="leaving").start()


def _drain() -> None:
    from calls.queue.worker import drain

    with _leaving:
        if not _left.is_set():
            try:
                drain()
            finally:
                _left.set()


@worker_shutdown.connect
def wait_for_the_rest(**_: Any) -> None:
    # Celery waits for calls that it rang for; the sweep's have nobody else. Nobody asked a worker
    # that ends by an error of Celery's: it leaves as well.
    begin_to_leave()
    _left.wait(settings.STOP_WITHIN_S + 10)
