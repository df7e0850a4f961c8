"""A call that runs here, and may have something to say before its end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from calls.content.answers import Answer
from calls.running.execution import ExecutionRequest, Unwritten
from calls.running.listeners import CallListener, EarlyReply
from calls.running.progress import ProgressStep
from gateway.process.runtime import Runtime


async def run_until_reply(
    runtime: Runtime, execution_request: ExecutionRequest, call_listener: CallListener
) -> Answer | Unwritten | EarlyReply | None:
    """Runs the call until it ends or replies early. Then it goes on in the background."""
    engine = runtime.call_runtime.engine
    early_reply: asyncio.Future[EarlyReply] = asyncio.get_running_loop().create_future()
    call = runtime.keep(engine.execute(execution_request, _until(early_reply, call_listener)))
    either: set[asyncio.Future[Any]] = {call, early_reply}
    is_answered = False
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        is_answered = call.done()
    finally:
        if not is_answered:
            # Also where whoever asked stops waiting.
            call.add_done_callback(partial(_keep_rest, runtime))
    return call.result() if is_answered else early_reply.result()


def _keep_rest(runtime: Runtime, call: asyncio.Task[Answer | Unwritten | None]) -> None:
    """Writes the outcome of a call that nobody waits for any more."""
    if not call.cancelled() and not call.exception():
        ended = call.result()
        if isinstance(ended, Unwritten):
            runtime.keep(ended.finish)


def _until(early_reply: asyncio.Future[EarlyReply], call_listener: CallListener) -> CallListener:
    """A listener that passes on nothing after the early reply."""

    def step(said: ProgressStep) -> None:
        if call_listener.on_step is not None and not early_reply.done():
            call_listener.on_step(said)

    def log(line: dict[str, object]) -> None:
        if call_listener.on_log is not None and not early_reply.done():
            call_listener.on_log(line)

    def rpc(why: EarlyReply) -> None:
        if not early_reply.done():
            early_reply.set_result(why)

    return CallListener(step, log if call_listener.on_log else None, rpc)
