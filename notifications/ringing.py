"""Rings for a worker to send what is due; a lost ring costs seconds (notifications/sweeping.py)."""

from __future__ import annotations

from django.db import transaction

from calls.dispatch import WorkerNotifier
from notifications.tasks import send_notifications

_notifier = WorkerNotifier(send_notifications)


def ring() -> None:
    _notifier.notify()


def ring_on_commit() -> None:
    transaction.on_commit(ring)
