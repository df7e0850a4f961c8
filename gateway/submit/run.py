"""A call that runs here, and may have something to say before its end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from calls.content.answers import Answer
from calls.running.execution import ExecutionRequest
from calls.running.listeners import CallListener, EarlyReply
from calls.running.progress import ProgressStep
from gateway.process.runtime import Runtime


async def run(
    runtime: Runtime,
    execution_request: ExecutionRequest,
    call_listener: CallListener,
    may_reply_early: bool,
) -> tuple[Answer | None, EarlyReply | None]:
    """Its answer (None: it goes back to the queue), or why it goes on without one for now."""
    engine = runtime.call_runtime.engine
    early_reply: asyncio.Future[EarlyReply] = asyncio.get_running_loop().create_future()
    listener = _until(early_reply, call_listener, may_reply_early)
    call = runtime.keep(engine.execute(execution_request, listener))
    either: set[asyncio.Future[Any]] = {call, early_reply}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if call.done():
        return call.result(), None
    return None, early_reply.result()


def _until(
    early_reply: asyncio.Future[EarlyReply], call_listener: CallListener, may_reply_early: bool
) -> CallListener:
    """Whoever asked is told no more once they turned to something else. Whatever they can do: not
    to wait for a record that takes no outcome."""

    def step(said: ProgressStep) -> None:
        if call_listener.on_step is not None and not early_reply.done():
            call_listener.on_step(said)

    def log(line: dict[str, object]) -> None:
        if call_listener.on_log is not None and not early_reply.done():
            call_listener.on_log(line)

    def rpc(why: EarlyReply) -> None:
        if not early_reply.done():
            early_reply.set_result(why)

    return CallListener(
        step,
        log if call_listener.on_log else None,
        rpc if may_reply_early else None,
        partial(rpc, "unwritten"),
    )
