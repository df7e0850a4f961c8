"""Tasks of 2025-11-25: a client asks for one with its call, and comes back for it.

They are the same calls that the extension of 2026-07-28 shows, by the same ids.
Source: MCP 2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import connection
from django.utils.translation import gettext as _

from audit.models import ClockTime
from calls.answers import Answer
from calls.listed import KEPT_S
from calls.models import ListedTask
from calls.states import LIVE, State
from core import seal
from gateway import handles, lookups, questions, replies, waiting, wording
from gateway.asked import Submitted
from gateway.exchange import Turn
from gateway.lookups import Found
from gateway.refusals import Refusal, invalid_params
from gateway.revisions import IMMEDIATE, INTERNAL_ERROR, METHOD_NOT_FOUND, RELATED_TASK
from gateway.task_methods import ENDED, POLL_HELD_MS, POLL_MS, just_made, time_of
from gateway.watch import Asked

PAGE = 100
TTL_MS = KEPT_S * 1000
# Every id that there is comes before it.
_LAST = UUID(int=2**128 - 1)
_LOOK_S = 60.0


@dataclass(frozen=True, slots=True)
class Task:
    found: Found
    # By tasks/cancel: then it stays so, whatever becomes of the call.
    cancelled: bool

    @property
    def call_id(self) -> UUID:
        return self.found.call_id


def check(turn: Turn) -> None:
    """Raises the refusal of what is no wish for a task."""
    wish = turn.message.params["task"]
    ttl = wish.get("ttl", 0) if isinstance(wish, dict) else None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl < 0:
        raise invalid_params("params.task must be an object; its ttl, a number of milliseconds.")


def never(tool: str) -> Refusal:
    said = f"{tool} answers at once and never runs as a task."
    return Refusal(404, said, code=METHOD_NOT_FOUND)


async def created(turn: Turn, submitted: Submitted) -> bytes:
    """Whatever became of the call meanwhile, its client learns by the task."""
    if submitted.joined:
        await asyncio.to_thread(_list, submitted.call_id, turn.agent_id)
    found = await just_made(turn, submitted.call_id)
    task = _described(turn, Task(found, cancelled=False), "working")
    meta: dict[str, Any] = {
        replies.CALL: str(found.call_id),
        RELATED_TASK: {"taskId": task["taskId"]},
        IMMEDIATE: task["statusMessage"],
    }
    if submitted.answer is not None and submitted.answer.repeated:
        meta[replies.REPEATED] = True
    return turn.result(orjson.dumps({"task": task, "_meta": meta}))


async def get(turn: Turn) -> bytes:
    task = await _asked_for(turn)
    return turn.result(orjson.dumps(_described(turn, task, await _status(turn, task))))


async def result(turn: Turn) -> bytes:
    """Held until the call has ended; what its server asks meanwhile is asked on this stream."""
    task = await _asked_for(turn)
    turn.reply.linger()
    answer = task.found.seen.answer or await _ended(turn, task.call_id)
    await waiting.heard(turn.runtime, task.call_id)
    if answer.error is not None:
        return turn.answered(answer)
    body = replies.result_of(turn.fitted(answer), modern=False)
    return turn.result(replies.related(body, _id(turn, task.call_id)))


async def cancel(turn: Turn) -> bytes:
    task = await _asked_for(turn)
    status = await _status(turn, task)
    if status not in ENDED and not await waiting.cancel(
        turn.runtime, task.call_id, by=turn.exchange.actor
    ):
        # Somebody else may have asked for the same; or it ended at this moment.
        task = await _asked_for(turn)
        status = await _status(turn, task)
    if status in ENDED:
        raise invalid_params(f"The task has ended: it is {status}.")
    await asyncio.to_thread(_note_cancelled, task.call_id)
    return turn.result(orjson.dumps(_described(turn, await _asked_for(turn), "cancelled")))


async def listed(turn: Turn) -> bytes:
    before = _cursor(turn.message.params.get("cursor"))
    found = await lookups.tasks(turn.runtime, agent_id=turn.agent_id, before=before, most=PAGE + 1)
    shown = found[:PAGE]
    members: dict[str, Any] = {"tasks": [await _line(turn, one) for one in shown]}
    if len(found) > PAGE:
        members["nextCursor"] = seal.to_text(shown[-1].call_id.bytes)
    return turn.result(orjson.dumps(members))


async def _asked_for(turn: Turn) -> Task:
    call_id = handles.call_of_task(turn.message.params.get("taskId"), turn.agent_id)
    cancelled = await lookups.cancelled_task(turn.runtime, call_id, agent_id=turn.agent_id)
    found = await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)
    if found is None or cancelled is None:
        # None, or one that its agent did not ask for as a task.
        raise invalid_params(handles.NO_TASK)
    return Task(found, cancelled)


async def _ended(turn: Turn, call_id: UUID) -> Answer:
    watch, task_id = turn.runtime.watch, _id(turn, call_id)
    while True:
        seen = await watch.wait(
            call_id,
            seconds=_LOOK_S,
            on_step=turn.on_step,
            for_people=True,
            after=turn.asked_last if turn.client.abilities else None,
        )
        if isinstance(seen, Answer):
            return seen
        if isinstance(seen, Asked):
            new_from, turn.asked_last = turn.asked_last, seen.last
            asked = await questions.of(turn, call_id)
            new = [one for one in asked if one.id > new_from]
            questions.push(turn, call_id, new, task=task_id)
        elif watch.until is not None:
            said = "This process makes way for another one: ask for the result again."
            raise Refusal(503, said, code=INTERNAL_ERROR)


async def _status(turn: Turn, task: Task) -> str:
    seen = task.found.seen
    return await _named(turn, task.call_id, seen.state, task.cancelled, bool(seen.asked))


async def _named(turn: Turn, call_id: UUID, state: State, cancelled: bool, asks: bool) -> str:
    if cancelled or state in (State.CANCELLED, State.WITHDRAWN):
        return "cancelled"
    if state in LIVE:
        can = asks and turn.client.abilities and await questions.of(turn, call_id)
        return "input_required" if can else "working"
    # Here what a tool calls an error is a failure, and so is a person's no.
    return "completed" if state == State.SUCCEEDED else "failed"


def _described(turn: Turn, task: Task, status: str) -> dict[str, Any]:
    found = task.found
    said = _said(turn, found)
    return {
        **_times(turn, found.call_id, found.asked_at, found.touched_at),
        "status": status,
        "statusMessage": said,
        "pollInterval": POLL_HELD_MS if found.seen.state == State.HELD else POLL_MS,
    }


def _said(turn: Turn, found: Found) -> str:
    answer = found.seen.answer
    if answer is None:
        return wording.of(found, turn.exchange.toolset)
    if found.seen.state == State.TOOL_ERROR:
        return _("The tool answered with an error: ask for the result.")
    return answer.text


async def _line(turn: Turn, one: lookups.Listed) -> dict[str, Any]:
    status = await _named(turn, one.call_id, one.state, one.cancelled, one.asks)
    return {**_times(turn, one.call_id, one.asked_at, one.touched_at), "status": status}


def _times(turn: Turn, call_id: UUID, asked_at: datetime, touched_at: datetime) -> dict[str, Any]:
    return {
        "taskId": _id(turn, call_id),
        "createdAt": time_of(asked_at),
        "lastUpdatedAt": time_of(touched_at),
        "ttl": TTL_MS,
    }


def _id(turn: Turn, call_id: UUID) -> str:
    return handles.task_id(call_id, turn.agent_id)


def _cursor(cursor: object) -> UUID:
    if cursor is None:
        return _LAST
    try:
        return UUID(bytes=seal.from_text(cursor) if isinstance(cursor, str) else b"")
    except ValueError:
        raise invalid_params("This cursor is not one of ours: list again without it.") from None


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
