"""A call that its server runs as a task: asked after until it ends.

Sources: io.modelcontextprotocol/tasks, specification/draft/tasks.md; MCP 2025-11-25,
basic/utilities/tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from core import strict_json
from core.kept_english import gettext as _
from registry.upstream import wire
from registry.upstream.session import input_requests
from registry.upstream.session.calling import TaskErrand, UpstreamCall
from registry.upstream.session.task_news import LEAST_S, MOST_S, TaskNews, TaskServer
from registry.upstream.session.task_stopwatch import TaskStopwatch
from registry.upstream.values import (
    CallReply,
    CancelledUpstream,
    InputWanted,
    Limits,
    Lost,
    NotSent,
    OutcomeUnknown,
    ProtocolError,
    RefusedByServer,
    RpcErrorReply,
    TaskRef,
    TimedOut,
    UpstreamError,
)
from registry.upstream.wire import WireMessage

_USUAL_S = 1.0
_ERRAND = Limits(connect_s=5, idle_s=15, total_s=20)
_ENDED = ("completed", "failed", "cancelled")
_ID_MAX = 1000
# Its questions have names of their own as long as it lasts.
_ROUND = 0


def task_of(reply: CallReply, call: UpstreamCall) -> TaskRef | None:
    """The task that a tools/call was answered with; None for a result."""
    if reply.kind == "task":
        return _ref(orjson.loads(reply.result), call, modern=True)
    if call.as_task:
        task = orjson.loads(reply.result).get("task")
        return _ref(task, call, modern=False) if isinstance(task, dict) else None
    return None


def _ref(task: dict[str, Any], call: UpstreamCall, *, modern: bool) -> TaskRef:
    name = task.get("taskId")
    if not isinstance(name, str) or not 0 < len(name) <= _ID_MAX:
        raise ProtocolError(_("The server answered with a task that has no usable id."))
    return TaskRef(name, modern, _wished(task), call.token, session=call.session)


def _wished(task: dict[str, Any]) -> float:
    """How often the server wants to be asked."""
    said = task.get("pollIntervalMs", task.get("pollInterval"))
    if isinstance(said, bool) or not isinstance(said, int | float):
        return _USUAL_S
    return min(max(said / 1000, LEAST_S), MOST_S)


async def follow(
    server: TaskServer, ref: TaskRef, call: UpstreamCall, *, is_new: bool = False
) -> CallReply:
    """Polls until the task ends; raises as a call does. It was sent: nothing here is NotSent.
    `is_new`: its server has just made it."""
    call.token = ref.token
    try:
        async with asyncio.timeout(call.limits.total_s) as clock:
            with TaskNews(server, ref, call) as news:
                stopwatch = TaskStopwatch() if is_new else None
                return await _followed(server, ref, call, news, clock, stopwatch)
    except TimeoutError:
        await _tell(server, ref)
        raise TimedOut(_("The server's task did not end in time."), "total") from None


async def _followed(
    server: TaskServer,
    ref: TaskRef,
    call: UpstreamCall,
    news: TaskNews,
    clock: asyncio.Timeout,
    stopwatch: TaskStopwatch | None,
) -> CallReply:
    wished_s = ref.poll_s
    given: set[str] = set()
    seen: tuple[Any, ...] = ()
    asked_at: float | None = None
    while True:
        if await news.wait(wished_s):
            return await _stopped(server, ref, call, partial(CancelledUpstream))
        if news.result is not None and news.result.error is None:
            return wire.reply(news.result)
        if stopwatch:
            stopwatch.note_look()
        task = await _looked(server, ref, call)
        if task is None:
            continue
        value, message = task
        if value.get("status") in _ENDED:
            took_s = stopwatch.took(value) if stopwatch else None
            if took_s is not None and call.on_task_end is not None:
                await call.on_task_end(replace(ref, took_s=took_s, session=""))
            return await _end(server, ref, call, value, message)
        if stopwatch:
            stopwatch.note_running()
        asked_at = _pause(clock, asked_at, is_asked=value.get("status") == "input_required")
        _relay(call, value)
        if value.get("status") == "input_required" and not await _helped(
            server, ref, call, value, given, news
        ):
            return await _stopped(server, ref, call, partial(InputWanted, _wanted(value)))
        wished_s = _wished(value)
        if seen != (seen := (value.get("status"), value.get("statusMessage"), len(given))):
            news.note_change()


def _pause(clock: asyncio.Timeout, since: float | None, *, is_asked: bool) -> float | None:
    """The server's time stands still while it waits for an answer; since when it was seen to."""
    now = asyncio.get_running_loop().time()
    when = clock.when()
    if since is not None and when is not None:
        clock.reschedule(when + now - since)
    return now if is_asked else None


async def _helped(
    server: TaskServer,
    ref: TaskRef,
    call: UpstreamCall,
    value: dict[str, Any],
    given: set[str],
    news: TaskNews,
) -> bool:
    """Pass on what answers there are to what it asks; False where there will be none."""
    requests = value.get("inputRequests")
    if call.asking is None:
        return False
    if not ref.modern:
        # It asks on the stream on which it is asked for its result.
        news.listen()
        return True
    if not isinstance(requests, dict) or not requests:
        return False
    answers = input_requests.input_responses(requests, await call.asking.look(requests, _ROUND))
    if answers is None:
        return False
    # It may list what it was just told for a moment longer.
    new = {key: answer for key, answer in answers.items() if key not in given}
    if new:
        more = wire.responses(orjson.dumps(new))
        with contextlib.suppress(NotSent, OutcomeUnknown, RefusedByServer):
            await server.about_task(TaskErrand("tasks/update", ref.id, more), _ERRAND)
            given |= set(new)
    return True


async def _stopped(
    server: TaskServer, ref: TaskRef, call: UpstreamCall, why: Callable[..., CancelledUpstream]
) -> CallReply:
    """Told to stop, it may all the same have come to a result, which wins."""
    await _tell(server, ref)
    until = asyncio.get_running_loop().time() + call.limits.cancel_grace_s
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(LEAST_S)
        task = await _looked(server, ref, call)
        if task is None:
            continue
        value, message = task
        if value.get("status") == "cancelled":
            raise why(acknowledged=True)
        if value.get("status") in _ENDED:
            return await _end(server, ref, call, value, message)
    raise why(acknowledged=False)


async def _looked(
    server: TaskServer, ref: TaskRef, call: UpstreamCall
) -> tuple[dict[str, Any], WireMessage] | None:
    """None: it could not be asked just now, and may be later."""
    try:
        message = await server.about_task(TaskErrand("tasks/get", ref.id), _ERRAND)
    except (NotSent, OutcomeUnknown, RefusedByServer) as error:
        _check_credential(error, call)
        return None
    except RpcErrorReply as error:
        message = WireMessage(error=error.raw)
    if message.error is not None:
        said = str(message.error.get("message", ""))[:200]
        raise Lost(_("The server no longer knows its task: %s") % said)
    return message.value or {}, message


async def _end(
    server: TaskServer,
    ref: TaskRef,
    call: UpstreamCall,
    value: dict[str, Any],
    message: WireMessage,
) -> CallReply:
    if value["status"] == "cancelled":
        raise OutcomeUnknown("The server cancelled its task by itself.")
    if not ref.modern:
        return wire.reply(await _fetched(server, ref, call))
    if value["status"] == "failed" and isinstance(value.get("error"), dict):
        return wire.reply(WireMessage(error=wire.checked_error(value["error"])))
    result = value.get("result")
    if not isinstance(result, dict):
        raise ProtocolError(_("The server's task ended without a result."))
    return wire.reply(WireMessage(result=_cut_out(message, result), value=result))


async def _fetched(server: TaskServer, ref: TaskRef, call: UpstreamCall) -> WireMessage:
    """Fetches the result of a task that has ended; safe to repeat."""
    while True:
        try:
            return await server.about_task(TaskErrand("tasks/result", ref.id), _ERRAND)
        except (NotSent, OutcomeUnknown, RefusedByServer) as error:
            _check_credential(error, call)
            await asyncio.sleep(_USUAL_S)


def _check_credential(error: UpstreamError, call: UpstreamCall) -> None:
    """Raises the error where it is about a credential that can be renewed."""
    if call.renews and isinstance(error, RefusedByServer) and error.status == 401:
        raise error


def _cut_out(message: WireMessage, result: dict[str, Any]) -> bytes:
    """The bytes as the server wrote them, where they can be found."""
    text = message.result.decode()
    try:
        begin, end = strict_json.spans(text)["result"]
    except (KeyError, ValueError, RecursionError):
        return json.dumps(result).encode()
    return text[begin:end].encode()


def _relay(call: UpstreamCall, value: dict[str, Any]) -> None:
    said = value.get("statusMessage")
    if isinstance(said, str) and said and call.on_status:
        call.on_status(said)


def _wanted(value: dict[str, Any]) -> str:
    """The server's message in the task's input request."""
    requests = value.get("inputRequests")
    asked = requests.values() if isinstance(requests, dict) else ()
    said = [_member(_member(one, "params"), "message") for one in asked]
    words = [text for text in [*said, value.get("statusMessage")] if isinstance(text, str) and text]
    return words[0][:300] if words else ""


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


async def _tell(server: TaskServer, ref: TaskRef) -> None:
    with contextlib.suppress(UpstreamError):
        await server.about_task(TaskErrand("tasks/cancel", ref.id), _ERRAND)
