"""Ringing for a worker. The row says what is to be done; a lost ring costs a second."""

from __future__ import annotations

import logging
import time
from uuid import UUID

from django.db import transaction
from kombu.exceptions import OperationalError

from calls.tasks import run_call

log = logging.getLogger(__name__)

# To find out takes seconds: whoever asks meanwhile does not wait for a broker that was just away.
AWAY_S = 5.0
_away_until = 0.0


def ring(call_id: UUID) -> None:
    global _away_until  # noqa: PLW0603 one per process is the point
    if time.monotonic() < _away_until:
        return
    try:
        run_call.apply_async((str(call_id),), retry=False)
    except OperationalError as error:
        _away_until = time.monotonic() + AWAY_S
        log.warning("call %s: the broker is away, the sweep will find it: %s", call_id, error)


def ring_on_commit(call_id: UUID) -> None:
    transaction.on_commit(lambda: ring(call_id))
