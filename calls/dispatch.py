"""Ringing for a worker. The row says what is to be done; a lost ring costs a second."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction
from kombu.exceptions import OperationalError

from calls.tasks import run_call

log = logging.getLogger(__name__)


def ring(call_id: UUID) -> None:
    try:
        run_call.apply_async((str(call_id),), retry=False)
    except OperationalError as error:
        log.warning("call %s: the broker is away, the sweep will find it: %s", call_id, error)


def ring_on_commit(call_id: UUID) -> None:
    transaction.on_commit(lambda: ring(call_id))
