"""The runtime of the running event loop, started when it is first asked for.

Servers that send no lifespan events, background loops and commands all get theirs here.
"""

from __future__ import annotations

import asyncio

from gateway.process.runtime import Runtime

_starting: dict[asyncio.AbstractEventLoop, asyncio.Task[Runtime]] = {}


async def get_runtime() -> Runtime:
    loop = asyncio.get_running_loop()
    task = _starting.get(loop)
    if task is None:
        task = _starting[loop] = loop.create_task(_started(), name="start the runtime")
    # Whoever asks may be cancelled; the others still want it.
    return await asyncio.shield(task)


async def _started() -> Runtime:
    runtime = Runtime()
    await runtime.start()
    return runtime


def is_listening() -> bool:
    """Each runtime of this process hears the database."""
    return all(runtime.call_runtime.listener.is_listening for runtime in all_started())


def all_started() -> list[Runtime]:
    """The runtimes of this process."""
    tasks = [task for loop, task in list(_starting.items()) if not loop.is_closed()]
    return [task.result() for task in tasks if _has_started(task)]


def _has_started(task: asyncio.Task[Runtime]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


async def close_runtime() -> None:
    """Close this loop's runtime, if it ever had one."""
    task = _starting.pop(asyncio.get_running_loop(), None)
    if task is not None:
        runtime = await task
        await runtime.aclose()
