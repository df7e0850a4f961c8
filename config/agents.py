"""The agents' endpoint as a process of its own: `uvicorn config.agents:app`."""

import asyncio
import gc
import os
import signal
from types import FrameType

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from gateway import listening  # noqa: E402
from gateway.endpoint import Endpoint  # noqa: E402


def end_streams_first(asked: signal.Signals) -> None:
    """uvicorn waits for streams to end before it stops, and tells nobody that it waits."""
    stop = signal.getsignal(asked)
    loop = asyncio.get_running_loop()

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(listening.end_all)
        if callable(stop):
            stop(number, frame)

    signal.signal(asked, handle)


class Agents(Endpoint):
    async def begin(self) -> None:
        for asked in (signal.SIGTERM, signal.SIGINT):
            end_streams_first(asked)


app = Agents()

gc.collect()
gc.freeze()
