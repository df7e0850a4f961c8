import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("countersign")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_ready.connect
def begin(**_: Any) -> None:
    # Celery offers no other hook; the sweep needs the worker's process, not its messages.
    from config.sweep import Sweep

    Sweep().start()
