"""Telling browsers that a row changed. Events carry names and ids; receivers read the row.

A lost event delays a picture and never falsifies one, so failures to send are logged and
forgotten: no call waits for a browser.
"""

from __future__ import annotations

import asyncio
import logging

from channels import DEFAULT_CHANNEL_LAYER
from channels.layers import channel_layers, get_channel_layer
from django.db import transaction

from core import loop

log = logging.getLogger(__name__)

QUIET_S = 0.4


async def notify(group: str) -> None:
    """`group` is "queue", "calls", "frozen" or "call.<uuid>"; its consumers get `changed`."""
    if DEFAULT_CHANNEL_LAYER not in channel_layers.backends:
        # Its first use imports a library, for which a busy machine needs seconds.
        await asyncio.to_thread(get_channel_layer)
    layer = get_channel_layer()
    assert layer is not None
    try:
        async with asyncio.timeout(2):
            await layer.group_send(group, {"type": "changed", "group": group})
    except Exception as error:
        # Each layer has errors of its own, and none of them is worth a call.
        log.warning("live: %s was not told: %s", group, error)


def notify_on_commit(*groups: str) -> None:
    """Notifies after the caller's transaction has committed, without waiting."""

    def tell() -> None:
        for group in groups:
            loop.submit(notify(group))

    transaction.on_commit(tell)


class Notifier:
    """Rings groups from a busy loop: many rings of one group within QUIET_S become one."""

    def __init__(self) -> None:
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def notify(self, group: str, *, quiet_s: float = QUIET_S) -> None:
        if group in self._due:
            return
        clock = asyncio.get_running_loop()
        self._due[group] = clock.call_later(quiet_s, self._send, group)

    def _send(self, group: str) -> None:
        del self._due[group]
        task = asyncio.get_running_loop().create_task(notify(group))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
