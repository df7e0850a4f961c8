"""A call that runs here, and may have something to say before its end."""

from __future__ import annotations

import asyncio
from typing import Any

from calls.answers import Answer
from calls.execution import Sending
from calls.heard import Ear, Turned
from calls.progress import Step
from gateway.runtime import Runtime


async def run(
    runtime: Runtime, sending: Sending, ear: Ear, may_turn: bool
) -> tuple[Answer | None, Turned | None]:
    """Its answer (None: it goes back to the queue), or why it goes on without one for now."""
    engine = runtime.hands.engine
    if not may_turn:
        return await engine.execute(sending, ear), None
    turned: asyncio.Future[Turned] = asyncio.get_running_loop().create_future()
    call = runtime.keep(engine.execute(sending, _until(turned, ear)))
    either: set[asyncio.Future[Any]] = {call, turned}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if call.done():
        return call.result(), None
    return None, turned.result()


def _until(turned: asyncio.Future[Turned], ear: Ear) -> Ear:
    """Whoever asked is told no more once they turned to something else."""

    def step(said: Step) -> None:
        if ear.on_step is not None and not turned.done():
            ear.on_step(said)

    def log(line: dict[str, object]) -> None:
        if ear.on_log is not None and not turned.done():
            ear.on_log(line)

    def turn(why: Turned) -> None:
        if not turned.done():
            turned.set_result(why)

    return Ear(step, log if ear.on_log else None, turn)
