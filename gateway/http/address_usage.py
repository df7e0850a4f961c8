"""Addresses that agents come from, told to the record when they are new and now and then."""

from __future__ import annotations

import asyncio
import logging
import time

from django.conf import settings
from django.db import DatabaseError, connection

from accounts.agent_addresses import note_address
from core.client_address import address_from
from gateway.protocol.headers import Headers

log = logging.getLogger(__name__)

AGAIN_S = 600.0
KNOWN_MAX = 20_000

# An agent, its peer, and the address that trusted proxies say.
Place = tuple[int, str, str]


class AddressUsage:
    """The addresses of agents that this process knows. A new one is written down before the request
    goes on: rules may ask for it."""

    def __init__(self) -> None:
        self._known: dict[Place, float] = {}

    async def note(self, agent_id: int, peer: str, headers: Headers) -> float:
        """Until when it is known, in seconds of time.monotonic(); 0 if it could not be written."""
        # What stands before a proxy's own words may be another one each time.
        place = agent_id, peer, _address(peer, headers) if settings.TRUSTED_PROXIES else ""
        if (until := self._known.get(place, 0.0)) > time.monotonic():
            return until
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        address = _address(peer, headers)
        if address and not await asyncio.to_thread(_write, agent_id, address):
            return 0.0
        self._known[place] = until = time.monotonic() + AGAIN_S
        return until


def _address(peer: str, headers: Headers) -> str:
    told = headers.text(b"x-forwarded-for") or "", headers.text(b"forwarded") or ""
    return address_from(peer, *told)


def _write(agent_id: int, address: str) -> bool:
    try:
        note_address(agent_id, address)
    except DatabaseError as error:
        # A call that cannot be recorded now is not sent either.
        log.warning("an agent's address: %s", str(error).strip())
        return False
    finally:
        connection.close()
    return True
