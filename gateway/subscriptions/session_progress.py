"""The progress of a session's tasks, on the stream beside it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from uuid import UUID

from gateway.process.runtime import Runtime
from gateway.protocol.reply_stream import ProgressRelay, ReplyStream

# Longer than a call may run: whoever waits longer hears no more.
_LASTS_S = 24 * 3600.0


@contextlib.contextmanager
def telling(runtime: Runtime, reply: ReplyStream, session: str) -> Iterator[None]:
    """Relays progress of tasks that start from now on."""
    followed: set[asyncio.Task[None]] = set()

    def begin(call_id: UUID, token: str | int) -> None:
        task = asyncio.create_task(_follow(runtime, reply, call_id, token), name="task's progress")
        followed.add(task)
        task.add_done_callback(followed.discard)

    try:
        with runtime.tasks.listening(session, begin):
            yield
    finally:
        for task in followed:
            task.cancel()


async def _follow(runtime: Runtime, reply: ReplyStream, call_id: UUID, token: str | int) -> None:
    relay = ProgressRelay(reply, token)
    await runtime.watch.wait(call_id, seconds=_LASTS_S, on_step=relay.step)
