"""Servers that wait to be discovered in this worker: few at a time, and never in calls' threads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import Future

from channels.db import database_sync_to_async

from core import loop
from registry.discovery import discovery
from registry.icons import fetching

log = logging.getLogger(__name__)


class DiscoveryQueue:
    """Discovers `AT_ONCE` servers at a time; a server that waits already is not added again."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(discovery.AT_ONCE)
        self._icon_slot = asyncio.Semaphore(1)
        self._waiting: set[int] = set()

    def add(self, server_ids: Iterable[int]) -> Future[None]:
        """Returns at once; what is returned is done when all of them were discovered."""
        return _noted(loop.discovery.submit(self._discover(list(server_ids))))

    def add_all(self) -> Future[None]:
        """All servers that are enabled."""
        return _noted(loop.discovery.submit(self._discover_all()))

    async def _discover_all(self) -> None:
        await self._discover(await discovery.enabled_ids())

    async def _discover(self, server_ids: list[int]) -> None:
        new = [pk for pk in dict.fromkeys(server_ids) if pk not in self._waiting]
        self._waiting.update(new)
        await asyncio.gather(*map(self._one, new))

    async def _one(self, server_id: int) -> None:
        async with self._slots:
            # Whoever adds it from now on may want what this discovery is too early to see.
            self._waiting.discard(server_id)
            await discovery.look_at([server_id])
        # Beside other discoveries: a slow picture keeps nobody from being asked.
        async with self._icon_slot:
            await _fetch_icons(server_id)


async def _fetch_icons(server_id: int) -> None:
    try:
        await database_sync_to_async(fetching.fetch_missing, thread_sensitive=False)(server_id)
    except Exception:
        # What was discovered is kept, with or without pictures.
        log.exception("icons of server %d could not be fetched", server_id)


def _noted(discovered: Future[None]) -> Future[None]:
    """Also where nobody waits for it."""
    discovered.add_done_callback(_note_failure)
    return discovered


def _note_failure(discovered: Future[None]) -> None:
    if not discovered.cancelled() and (error := discovered.exception()):
        log.error("a discovery failed", exc_info=error)


# People wait for one, and may not wait for all the others.
requested, scheduled = DiscoveryQueue(), DiscoveryQueue()
