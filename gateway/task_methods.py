"""The tasks extension: a call that takes long is a task that its client comes back for.

Source: io.modelcontextprotocol/tasks, specification/draft/tasks.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from calls.answers import Answer, Look
from calls.states import State
from core.errors import RecordUnavailable
from gateway import handles, lookups, questions, replies, waiting, wording
from gateway.exchange import Turn
from gateway.lookups import Found
from gateway.refusals import Refusal, invalid_params
from gateway.revisions import MISSING_CAPABILITY, TASKS

TTL_MS = handles.LASTS_S * 1000
ENDED = ("completed", "failed", "cancelled")
# A person takes seconds at best; work may be done at once.
POLL_HELD_MS, POLL_MS = 2_000, 1_000


async def created(turn: Turn, call_id: UUID) -> bytes:
    """The call is durable before its agent hears of it, so the task can be asked for at once."""
    found = await just_made(turn, call_id)
    members = {"resultType": "task", **_task(turn, found, "working")}
    members["_meta"] = {replies.CALL: str(call_id)}
    return turn.result(orjson.dumps(members))


async def just_made(turn: Turn, call_id: UUID) -> Found:
    try:
        found = await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)
    except RecordUnavailable:
        # There is such a call, whatever cannot be read now: who is turned away asks again.
        made_at = datetime.now(UTC)
        found = Found(call_id, made_at, made_at, "", Look(State.QUEUED, None, None, "", None))
    assert found is not None
    return found


async def get(turn: Turn) -> bytes:
    found = await _asked_for(turn)
    if found.seen.answer is not None:
        await waiting.heard(turn.runtime, found.call_id)
    return turn.result(replies.own(await detailed(turn, found), modern=True))


async def detailed(turn: Turn, found: Found) -> dict[str, Any]:
    """How the task stands, with its outcome or its questions, for the client of this request."""
    members = _task(turn, found, _status(found.seen)) | _ending(turn, found.seen.answer)
    if found.seen.asked and turn.client.abilities:
        members |= await _wanted(turn, found.call_id)
    return members


async def update(turn: Turn) -> bytes:
    """What the server's task asked, its client answers; we ourselves ask it nothing."""
    found = await _asked_for(turn)
    responses = turn.message.params.get("inputResponses")
    if isinstance(responses, dict) and responses:
        await questions.given_to_task(turn, found.call_id, responses)
    return turn.result(replies.ACKNOWLEDGED)


async def cancel(turn: Turn) -> bytes:
    found = await _asked_for(turn)
    await waiting.cancel(turn.runtime, found.call_id, by=turn.exchange.actor)
    return turn.result(replies.ACKNOWLEDGED)


def check_declared(turn: Turn) -> None:
    if not turn.client.takes_tasks:
        raise Refusal(
            400,
            "Declare the tasks extension in this request's capabilities.",
            code=MISSING_CAPABILITY,
            data={"requiredCapabilities": {"extensions": {TASKS: {}}}},
        )


async def _asked_for(turn: Turn) -> Found:
    check_declared(turn)
    call_id = handles.call_of_task(turn.message.params.get("taskId"), turn.agent_id)
    found = await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)
    if found is None:
        raise invalid_params(handles.NO_TASK)
    return found


async def _wanted(turn: Turn, call_id: UUID) -> dict[str, Any]:
    asked = {one.name: one.request for one in await questions.of(turn, call_id)}
    return {"status": "input_required", "inputRequests": asked} if asked else {}


def _task(turn: Turn, found: Found, status: str) -> dict[str, Any]:
    answer, state = found.seen.answer, found.seen.state
    return {
        "taskId": handles.task_id(found.call_id, turn.agent_id),
        "status": status,
        "statusMessage": (answer.text if answer else wording.of(found, turn.exchange.toolset)),
        "createdAt": time_of(found.asked_at),
        "lastUpdatedAt": time_of(found.touched_at),
        "ttlMs": TTL_MS,
        "pollIntervalMs": POLL_HELD_MS if state == State.HELD else POLL_MS,
    }


def _status(seen: Look) -> str:
    if seen.answer is None:
        return "working"
    if seen.answer.error is not None:
        return "failed"
    if seen.state in (State.CANCELLED, State.WITHDRAWN):
        return "cancelled"
    # Also where a person said no: only JSON-RPC errors are failures of a task.
    return "completed"


def _ending(turn: Turn, answer: Answer | None) -> dict[str, Any]:
    if answer is None or answer.state in (State.CANCELLED, State.WITHDRAWN):
        return {}
    if answer.error is not None:
        return {"error": orjson.Fragment(replies.error_of(answer))}
    return {"result": orjson.Fragment(replies.result_of(turn.fitted(answer), modern=True))}


def time_of(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
