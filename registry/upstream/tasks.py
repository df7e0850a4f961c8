"""A call that its server runs as a task: asked after until it ends.

Sources: io.modelcontextprotocol/tasks, specification/draft/tasks.md; MCP 2025-11-25,
basic/utilities/tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, Protocol

import orjson

from core import strict_json
from registry.upstream import wire
from registry.upstream.calling import Call
from registry.upstream.values import (
    Answered,
    CancelledUpstream,
    Limits,
    Lost,
    Nonsense,
    NotSent,
    OutcomeUnknown,
    Reply,
    TaskRef,
    TimedOut,
    UpstreamError,
)
from registry.upstream.wire import Message

# How often a server is asked, whatever it wishes.
_LEAST_S, _MOST_S, _USUAL_S = 0.2, 30.0, 1.0
_ERRAND = Limits(connect_s=5, idle_s=15, total_s=20)
_ENDED = ("completed", "failed", "cancelled")
_ID_MAX = 1000


class Server(Protocol):
    async def about_task(
        self, method: str, task: str, limits: Limits, *, modern: bool
    ) -> Message: ...


def made(reply: Reply, *, asked_for: bool) -> TaskRef | None:
    """The task that a tools/call was answered with; None for a result."""
    if reply.kind == "task":
        return _ref(orjson.loads(reply.result), modern=True)
    if asked_for:
        task = orjson.loads(reply.result).get("task")
        return _ref(task, modern=False) if isinstance(task, dict) else None
    return None


def _ref(task: dict[str, Any], *, modern: bool) -> TaskRef:
    name = task.get("taskId")
    if not isinstance(name, str) or not 0 < len(name) <= _ID_MAX:
        raise Nonsense("The server answered with a task that has no usable id.")
    return TaskRef(name, modern, _pause(task))


def _pause(task: dict[str, Any]) -> float:
    said = task.get("pollIntervalMs", task.get("pollInterval"))
    if isinstance(said, bool) or not isinstance(said, int | float):
        return _USUAL_S
    return min(max(said / 1000, _LEAST_S), _MOST_S)


async def follow(server: Server, ref: TaskRef, call: Call) -> Reply:
    """Until the task has ended; raises as a call does. It was sent: nothing here is NotSent."""
    try:
        async with asyncio.timeout(call.limits.total_s):
            return await _followed(server, ref, call)
    except TimeoutError:
        await _tell(server, ref)
        raise TimedOut("The server's task did not end in time.", "total") from None


async def _followed(server: Server, ref: TaskRef, call: Call) -> Reply:
    asked_at: float | None = None
    pause = ref.poll_s
    while True:
        if asked_at is None and await _cancelled_within(call, pause):
            asked_at = asyncio.get_running_loop().time()
            await _tell(server, ref)
        elif asked_at is not None:
            await asyncio.sleep(_LEAST_S)
        task = await _looked(server, ref)
        if task is not None:
            value, message = task
            if value.get("status") in _ENDED:
                return await _end(server, ref, value, message, asked=asked_at is not None)
            _relay(call, value)
            pause = _pause(value)
        if asked_at is not None and _over(asked_at, call.limits.cancel_grace_s):
            raise CancelledUpstream(acknowledged=False)


def _over(since: float, seconds: float) -> bool:
    return asyncio.get_running_loop().time() - since > seconds


async def _cancelled_within(call: Call, seconds: float) -> bool:
    if call.cancel is None:
        await asyncio.sleep(seconds)
        return False
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(call.cancel.wait(), seconds)
    return call.cancel.is_set()


async def _looked(server: Server, ref: TaskRef) -> tuple[dict[str, Any], Message] | None:
    """None: it could not be asked just now, and may be later."""
    try:
        message = await server.about_task("tasks/get", ref.id, _ERRAND, modern=ref.modern)
    except (NotSent, OutcomeUnknown):
        return None
    except Answered as error:
        message = Message(error=error.raw)
    if message.error is not None:
        said = str(message.error.get("message", ""))[:200]
        raise Lost(f"The server no longer knows its task: {said}")
    return message.value or {}, message


async def _end(
    server: Server, ref: TaskRef, value: dict[str, Any], message: Message, *, asked: bool
) -> Reply:
    if value["status"] == "cancelled":
        if asked:
            raise CancelledUpstream(acknowledged=True)
        raise OutcomeUnknown("The server cancelled its task by itself.")
    if not ref.modern:
        return wire.reply(await _fetched(server, ref))
    if value["status"] == "failed" and isinstance(value.get("error"), dict):
        return wire.reply(Message(error=wire.checked_error(value["error"])))
    result = value.get("result")
    if not isinstance(result, dict):
        raise Nonsense("The server's task ended without a result.")
    return wire.reply(Message(result=_cut_out(message, result), value=result))


async def _fetched(server: Server, ref: TaskRef) -> Message:
    """It has ended: its result can be asked for as often as need be."""
    while True:
        try:
            return await server.about_task("tasks/result", ref.id, _ERRAND, modern=False)
        except (NotSent, OutcomeUnknown):
            await asyncio.sleep(_USUAL_S)


def _cut_out(message: Message, result: dict[str, Any]) -> bytes:
    """As the server wrote it, where it can be found."""
    text = message.result.decode()
    try:
        begin, end = strict_json.spans(text)["result"]
    except (KeyError, ValueError, RecursionError):
        return json.dumps(result).encode()
    return text[begin:end].encode()


def _relay(call: Call, value: dict[str, Any]) -> None:
    said = value.get("statusMessage")
    waits = "It waits for input that cannot be given here." if _waits(value) else ""
    text = " ".join(part for part in (waits, said if isinstance(said, str) else "") if part)
    if text and call.on_status:
        call.on_status(text[:1000])


def _waits(value: dict[str, Any]) -> bool:
    return value.get("status") == "input_required"


async def _tell(server: Server, ref: TaskRef) -> None:
    with contextlib.suppress(UpstreamError):
        await server.about_task("tasks/cancel", ref.id, _ERRAND, modern=ref.modern)
