"""A worker's turn: claim a call, run it on the background loop, wait for its end."""

from __future__ import annotations

from uuid import UUID

from django.db import close_old_connections

from calls.claiming import claim
from calls.hands import background
from core import loop


def work(call_id: UUID) -> None:
    hands = background()
    sending = claim(call_id, owner=hands.engine.owner)
    # The call may take hours; the connection goes back to the pool meanwhile.
    close_old_connections()
    if sending is not None:
        loop.run(hands.engine.execute(sending))
