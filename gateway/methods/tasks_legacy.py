"""Tasks of 2025-11-25: a client asks for one with its call, and comes back for it.

They are the same calls that the extension of 2026-07-28 shows, by the same ids.
Source: MCP 2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from audit.models import ClockTime
from calls.content.answers import Answer
from calls.models import ListedTask
from calls.record.call_options import CallOptions, options_of
from calls.record.listed_tasks import KEPT_S
from calls.record.states import LIVE, State
from calls.running.input_relay import InputQuestion
from core import seal
from core.english import gettext as _
from core.errors import RecordUnavailable
from gateway.call_request import SubmitResult
from gateway.methods import input_requests, sign_in
from gateway.methods.call_end import wait_for_end
from gateway.methods.named_calls import find_named
from gateway.methods.tasks import ENDED, just_made, poll_ms, time_of
from gateway.process import session_tasks
from gateway.protocol import handles, replies
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import RpcError, invalid_params
from gateway.protocol.reply_stream import progress_of, token_of
from gateway.protocol.revisions import IMMEDIATE, INTERNAL_ERROR, METHOD_NOT_FOUND, RELATED_TASK
from gateway.protocol.sessions import session_key
from gateway.submit import lookups, messages, wait
from gateway.submit.lookups import AgentCall
from gateway.submit.token_scope import reaches

PAGE = 100
TTL_MS = KEPT_S * 1000
# Every id that there is comes before it.
_LAST = UUID(int=2**128 - 1)
_LOOK_S = 60.0


@dataclass(frozen=True, slots=True)
class Task:
    found: AgentCall
    # By tasks/cancel: then it stays so, whatever becomes of the call.
    cancelled: bool

    @property
    def call_id(self) -> UUID:
        return self.found.call_id


def check(rpc: RpcRequest) -> None:
    """Raises the refusal of what is no wish for a task."""
    wish = rpc.message.params["task"]
    ttl = wish.get("ttl", 0) if isinstance(wish, dict) else None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl < 0:
        raise invalid_params("params.task must be an object; its ttl, a number of milliseconds.")


def task_forbidden(tool: str) -> RpcError:
    said = f"{tool} answers at once and never runs as a task."
    return RpcError(404, said, code=METHOD_NOT_FOUND)


async def created(rpc: RpcRequest, submitted: SubmitResult) -> bytes:
    """Whatever became of the call meanwhile, its client learns by the task."""
    if submitted.joined:
        await asyncio.to_thread(_list, submitted.call_id, rpc.agent_id)
    found = await just_made(rpc, submitted.call_id)
    token = token_of(rpc.message.meta.get("progressToken"))
    if token is not None and rpc.client.session:
        journal = rpc.runtime.call_runtime.engine.journal
        session_tasks.tell(journal, session_key(rpc.client.session), found.call_id, token)
    task = _described(rpc, Task(found, cancelled=False), "working")
    meta: dict[str, Any] = {
        replies.CALL: str(found.call_id),
        RELATED_TASK: {"taskId": task["taskId"]},
        IMMEDIATE: task["statusMessage"],
        **rpc.warnings_meta,
    }
    if submitted.answer is not None and submitted.answer.repeated:
        meta[replies.REPEATED] = True
    return rpc.result(orjson.dumps({"task": task, "_meta": meta}))


async def get(rpc: RpcRequest) -> bytes:
    task = await _asked_for(rpc)
    return rpc.result(orjson.dumps(_described(rpc, task, await _status(rpc, task))))


async def result(rpc: RpcRequest) -> bytes:
    """Held until the call has ended; what its server asks meanwhile is asked on this stream."""
    task = await _asked_for(rpc)
    rpc.reply.watch_disconnect()
    if rpc.progress is None and task.found.seen.answer is None:
        # By the token of the request that made the task: it is good until the task has ended.
        options = await asyncio.to_thread(_options, task.call_id)
        rpc.progress = progress_of(rpc.reply, options.progress_token)
    answer = task.found.seen.answer or await _ended(rpc, task.call_id)
    await wait.mark_delivered(rpc.runtime, task.call_id)
    if answer.error is not None:
        return rpc.answered(answer)
    if answer.consent_page and rpc.client.opens_urls:
        return sign_in.ask(rpc, answer)
    body = replies.result_of(rpc.fitted(answer), modern=False)
    return rpc.result(replies.related(body, _id(rpc, task.call_id)))


async def cancel(rpc: RpcRequest) -> bytes:
    task = await _asked_for(rpc)
    status = await _status(rpc, task)
    if status not in ENDED and not await wait.cancel(
        rpc.runtime, task.call_id, by=rpc.context.actor
    ):
        # Somebody else may have asked for the same; or it ended at this moment.
        task = await _asked_for(rpc)
        status = await _status(rpc, task)
    if status in ENDED:
        raise invalid_params(f"The task has ended: it is {status}.")
    await asyncio.to_thread(_note_cancelled, task.call_id)
    return rpc.result(orjson.dumps(_described(rpc, await _asked_for(rpc), "cancelled")))


async def list_tasks(rpc: RpcRequest) -> bytes:
    before = _cursor(rpc.message.params.get("cursor"))
    found = await lookups.tasks(rpc.runtime, agent_id=rpc.agent_id, before=before, most=PAGE + 1)
    shown, bearer, toolset = found[:PAGE], rpc.context.bearer, rpc.context.toolset
    seen = [one for one in shown if reaches(bearer, toolset, one.tool_id)]
    members: dict[str, Any] = {"tasks": [await _line(rpc, one) for one in seen]}
    if len(found) > PAGE:
        members["nextCursor"] = seal.to_text(shown[-1].call_id.bytes)
    return rpc.result(orjson.dumps(members))


async def _asked_for(rpc: RpcRequest) -> Task:
    call_id = handles.call_of_task(rpc.message.params.get("taskId"), rpc.agent_id)
    found = await find_named(rpc.context, call_id)
    cancelled = await lookups.cancelled_task(rpc.runtime, call_id, agent_id=rpc.agent_id)
    if found is None or cancelled is None:
        # None, or one that its agent did not ask for as a task.
        raise invalid_params(handles.NO_TASK)
    return Task(found, cancelled)


async def _ended(rpc: RpcRequest, call_id: UUID) -> Answer:
    present = partial(_present, rpc, call_id)
    while True:
        seen = await wait_for_end(rpc, call_id, _LOOK_S, present, for_people=True, until_blind=True)
        if isinstance(seen, Answer):
            return seen
        if rpc.runtime.watch.is_blind:
            raise RecordUnavailable(lookups.NOT_KNOWN, call_id=call_id)
        if rpc.runtime.watch.until is not None:
            said = "This process makes way for another one: ask for the result again."
            raise RpcError(503, said, code=INTERNAL_ERROR)


def _present(
    rpc: RpcRequest, call_id: UUID, _asked: list[InputQuestion], new: list[InputQuestion]
) -> None:
    input_requests.push(rpc, call_id, new, task=_id(rpc, call_id))


async def _status(rpc: RpcRequest, task: Task) -> str:
    seen = task.found.seen
    return await _named(rpc, task.call_id, seen.state, task.cancelled, bool(seen.asked))


async def _named(rpc: RpcRequest, call_id: UUID, state: State, cancelled: bool, asks: bool) -> str:
    if cancelled or state in (State.CANCELLED, State.WITHDRAWN):
        return "cancelled"
    if state in LIVE:
        can = asks and rpc.client.abilities and await input_requests.of(rpc, call_id)
        return "input_required" if can else "working"
    # Here what a tool calls an error is a failure, and so is a person's no.
    return "completed" if state == State.SUCCEEDED else "failed"


def _described(rpc: RpcRequest, task: Task, status: str) -> dict[str, Any]:
    found = task.found
    said = _status_message(rpc, found) if status != "cancelled" else _cancelled(found)
    return {
        **_times(rpc, found.call_id, found.asked_at, found.touched_at),
        "status": status,
        "statusMessage": said,
        "pollInterval": poll_ms(found),
    }


def _cancelled(found: AgentCall) -> str:
    """A task that was cancelled stays so (basic/utilities/tasks, "Task Cancellation")."""
    answer = found.seen.answer
    if answer is None:
        return _("Cancelled. Work in progress was asked to stop.")
    if found.seen.state in (State.CANCELLED, State.WITHDRAWN):
        return answer.text
    return _("Cancelled, and it ended before it could stop: %(how)s") % {"how": answer.text}


def _status_message(rpc: RpcRequest, found: AgentCall) -> str:
    answer = found.seen.answer
    if answer is None:
        return messages.of(found, rpc.context.toolset)
    if found.seen.state == State.TOOL_ERROR:
        return _("The tool answered with an error: ask for the result.")
    return answer.text


async def _line(rpc: RpcRequest, one: lookups.TaskSummary) -> dict[str, Any]:
    status = await _named(rpc, one.call_id, State(one.state), one.cancelled, one.asks)
    return {**_times(rpc, one.call_id, one.asked_at, one.touched_at), "status": status}


def _times(
    rpc: RpcRequest, call_id: UUID, asked_at: datetime, touched_at: datetime
) -> dict[str, Any]:
    return {
        "taskId": _id(rpc, call_id),
        "createdAt": time_of(asked_at),
        "lastUpdatedAt": time_of(touched_at),
        "ttl": TTL_MS,
    }


def _id(rpc: RpcRequest, call_id: UUID) -> str:
    return handles.task_id(call_id, rpc.agent_id)


def _cursor(cursor: object) -> UUID:
    if cursor is None:
        return _LAST
    try:
        return UUID(bytes=seal.from_text(cursor) if isinstance(cursor, str) else b"")
    except ValueError:
        raise invalid_params("This cursor is not one of ours: list again without it.") from None


def _options(call_id: UUID) -> CallOptions:
    try:
        return options_of(call_id)
    finally:
        connection.close()


def _list(call_id: UUID, agent_id: int) -> None:
    """A call that there was before."""
    try:
        ListedTask.objects.get_or_create(call_id=call_id, defaults={"agent_id": agent_id})
    finally:
        connection.close()


def _note_cancelled(call_id: UUID) -> None:
    try:
        ListedTask.objects.filter(pk=call_id).update(cancelled_at=ClockTime())
    finally:
        connection.close()
