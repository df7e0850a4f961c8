"""A worker's turn: claim the next call, run it on the background loop, and so on while there are
any that may start."""

from __future__ import annotations

from django.db import close_old_connections

from calls.claiming import claim_next
from calls.hands import background
from core import loop


def work() -> None:
    hands = background()
    while (sending := claim_next(owner=hands.engine.owner)) is not None:
        # The call may take hours; the connection goes back to the pool meanwhile.
        close_old_connections()
        loop.run(hands.engine.execute(sending))
    close_old_connections()
