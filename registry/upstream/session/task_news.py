"""Task updates that a server sends by itself, on a stream of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol, Self

from registry.upstream.session.calling import TaskErrand, UpstreamCall
from registry.upstream.transport.http_request import BadStatus
from registry.upstream.values import (
    Limits,
    NotSent,
    OutcomeUnknown,
    RefusedByServer,
    RpcErrorReply,
    TaskRef,
    UpstreamError,
)
from registry.upstream.wire import ACKNOWLEDGED, TASK_CHANGED, WireMessage

# Most tasks end before it is worth a stream of its own.
_LISTEN_AFTER_S = 1.0
_AGAIN_S = 1.0
# How often a server is asked at least and at most, whatever it wishes.
LEAST_S, MOST_S = 0.1, 30.0
# Of the time since something was new: a task is known to have ended after so much more of it.
_PART = 0.1


class TaskServer(Protocol):
    async def about_task(self, errand: TaskErrand, limits: Limits) -> WireMessage: ...

    async def listen_to_task(self, task: str, hear: Callable[[WireMessage], None]) -> None: ...


class TaskNews:
    """While entered, `wait` ends early when the server announces an update.

    A server of 2025-11-25 is asked for the result at once: it answers when there is one, and until
    then says and asks what it has to on that stream.
    """

    def __init__(self, server: TaskServer, ref: TaskRef, call: UpstreamCall) -> None:
        self._server, self._ref, self._call = server, ref, call
        self._ring = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._since = asyncio.get_running_loop().time()
        # It says by itself when there is something new.
        self._speaks = False
        # What a server of 2025-11-25 answered to being asked for the result.
        self.result: WireMessage | None = None

    def __enter__(self) -> Self:
        self.listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()

    def listen(self) -> None:
        """Also anew, once it has ended."""
        if self._task is None or self._task.done():
            self.result = None
            job = self._listened() if self._ref.modern else self._wait_for_result()
            self._task = asyncio.create_task(job, name="listen to a task")

    def note_change(self) -> None:
        self._since = asyncio.get_running_loop().time()

    async def wait(self, wished_s: float) -> bool:
        """Waits until the next poll is due; returns whether the call was cancelled."""
        pause = min(max(wished_s, LEAST_S), MOST_S)
        if not self._speaks:
            since_s = asyncio.get_running_loop().time() - self._since
            pause = min(pause, max(LEAST_S, since_s * _PART))
        cancel = self._call.cancel or asyncio.Event()
        await _first_within(pause, self._ring.wait(), cancel.wait())
        self._ring.clear()
        return cancel.is_set()

    async def _listened(self) -> None:
        await asyncio.sleep(_LISTEN_AFTER_S)
        # Whatever keeps it from telling: it is asked all the same.
        with contextlib.suppress(UpstreamError, BadStatus):
            await self._server.listen_to_task(self._ref.id, self._hear)
        self._speaks = False

    def _hear(self, message: WireMessage) -> None:
        params = message.params or {}
        if message.method == ACKNOWLEDGED:
            told = params.get("notifications")
            ids = told.get("taskIds") if isinstance(told, dict) else None
            self._speaks = isinstance(ids, list) and self._ref.id in ids
            # What was new before it listened.
            self._ring.set()
        elif message.method == TASK_CHANGED and params.get("taskId") == self._ref.id:
            self._ring.set()

    async def _wait_for_result(self) -> None:
        total_s = self._call.limits.total_s
        limits = replace(self._call.limits, idle_s=total_s, total_s=total_s)
        errand = TaskErrand("tasks/result", self._ref.id, call=self._call)
        while self.result is None:
            try:
                self.result = await self._server.about_task(errand, limits)
            except RpcErrorReply as error:
                self.result = WireMessage(error=error.raw)
            except (NotSent, OutcomeUnknown, RefusedByServer):
                await asyncio.sleep(_AGAIN_S)
        self._ring.set()


async def _first_within(seconds: float, *events: Coroutine[Any, Any, Any]) -> None:
    waiting = [asyncio.ensure_future(one) for one in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
