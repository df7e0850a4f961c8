"""The tasks extension: a call that takes long is a task that its client comes back for.

Source: io.modelcontextprotocol/tasks, specification/draft/tasks.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from calls.content.answers import Answer, CallStatus
from calls.record.states import State
from core.errors import RecordUnavailable
from gateway.methods import input_requests, sign_in
from gateway.methods.named_calls import find_named
from gateway.protocol import handles, replies
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import RpcError, invalid_params
from gateway.protocol.revisions import MISSING_CAPABILITY, TASKS
from gateway.submit import lookups, messages, wait
from gateway.submit.lookups import AgentCall

TTL_MS = handles.LASTS_S * 1000
ENDED = ("completed", "failed", "cancelled")
# A person takes seconds at best.
POLL_HELD_MS = 2_000
# Of work that goes on: another tenth of the time that it has taken already, within these bounds.
POLL_LEAST_MS, POLL_MOST_MS = 100, 1_000


async def created(rpc: RpcRequest, call_id: UUID) -> bytes:
    """The call is durable before its agent hears of it, so the task can be asked for at once."""
    found = await just_made(rpc, call_id)
    members = {"resultType": "task", **_task(rpc, found, "working")}
    members["_meta"] = {replies.CALL: str(call_id), **rpc.warnings_meta}
    return rpc.result(orjson.dumps(members))


async def just_made(rpc: RpcRequest, call_id: UUID) -> AgentCall:
    try:
        found = await lookups.own(rpc.runtime, call_id, agent_id=rpc.agent_id)
    except RecordUnavailable:
        # There is such a call, whatever cannot be read now: who is turned away asks again.
        made_at = datetime.now(UTC)
        found = AgentCall(
            call_id, made_at, made_at, "", CallStatus(State.QUEUED, None, None, "", None)
        )
    assert found is not None
    return found


async def get(rpc: RpcRequest) -> bytes:
    found = await _asked_for(rpc)
    if found.seen.answer is not None:
        await wait.mark_delivered(rpc.runtime, found.call_id)
    return rpc.result(replies.own(await detailed(rpc, found), modern=True))


async def detailed(rpc: RpcRequest, found: AgentCall) -> dict[str, Any]:
    """How the task stands, with its outcome or its questions, for the client of this request."""
    members = _task(rpc, found, _status(found.seen)) | _ending(rpc, found.seen.answer)
    if found.seen.asked and rpc.client.abilities:
        members |= await _wanted(rpc, found.call_id)
    elif found.seen.consent_page and rpc.client.opens_urls:
        members |= _page_first(found)
    return members


async def update(rpc: RpcRequest) -> bytes:
    """Answers input requests of the server's task; the gateway itself has none."""
    found = await _asked_for(rpc)
    responses = rpc.message.params.get("inputResponses")
    if isinstance(responses, dict) and responses:
        await input_requests.take_task_responses(rpc, found.call_id, responses)
    return rpc.result(replies.ACKNOWLEDGED)


async def cancel(rpc: RpcRequest) -> bytes:
    found = await _asked_for(rpc)
    await wait.cancel(rpc.runtime, found.call_id, by=rpc.context.actor)
    return rpc.result(replies.ACKNOWLEDGED)


def check_declared(rpc: RpcRequest) -> None:
    if not rpc.client.takes_tasks:
        raise RpcError(
            400,
            "Declare the tasks extension in this request's capabilities.",
            code=MISSING_CAPABILITY,
            data={"requiredCapabilities": {"extensions": {TASKS: {}}}},
        )


async def _asked_for(rpc: RpcRequest) -> AgentCall:
    check_declared(rpc)
    call_id = handles.call_of_task(rpc.message.params.get("taskId"), rpc.agent_id)
    found = await find_named(rpc.context, call_id)
    if found is None:
        raise invalid_params(handles.NO_TASK)
    return found


async def _wanted(rpc: RpcRequest, call_id: UUID) -> dict[str, Any]:
    asked = {one.name: one.request for one in await input_requests.of(rpc, call_id)}
    return {"status": "input_required", "inputRequests": asked} if asked else {}


def _page_first(found: AgentCall) -> dict[str, Any]:
    """The page on which the user of an approved call consents; its answer is the consent itself.
    The request has another name after each attempt."""
    attempt = int(found.touched_at.timestamp() * 1000)
    asked = sign_in.request_page(found.seen.consent_page, found.seen.reason, f"task.{attempt}")
    return {"status": "input_required", "inputRequests": asked}


def _task(rpc: RpcRequest, found: AgentCall, status: str) -> dict[str, Any]:
    answer = found.seen.answer
    return {
        "taskId": handles.task_id(found.call_id, rpc.agent_id),
        "status": status,
        "statusMessage": (answer.text if answer else messages.of(found, rpc.context.toolset)),
        "createdAt": time_of(found.asked_at),
        "lastUpdatedAt": time_of(found.touched_at),
        "ttlMs": TTL_MS,
        "pollIntervalMs": poll_ms(found),
    }


def poll_ms(found: AgentCall) -> int:
    """When to ask next: who asks then knows of the end after a tenth more than it took."""
    if found.seen.state == State.HELD:
        return POLL_HELD_MS
    tenth_ms = (datetime.now(UTC) - found.touched_at).total_seconds() * 100
    return int(min(max(tenth_ms, POLL_LEAST_MS), POLL_MOST_MS))


def _status(seen: CallStatus) -> str:
    if seen.answer is None:
        return "working"
    if seen.answer.error is not None:
        return "failed"
    if seen.state in (State.CANCELLED, State.WITHDRAWN):
        return "cancelled"
    # Also where a person said no: only JSON-RPC errors are failures of a task.
    return "completed"


def _ending(rpc: RpcRequest, answer: Answer | None) -> dict[str, Any]:
    if answer is None or answer.state in (State.CANCELLED, State.WITHDRAWN):
        return {}
    if answer.error is not None:
        return {"error": orjson.Fragment(replies.error_of(answer))}
    return {"result": orjson.Fragment(replies.result_of(rpc.fitted(answer), modern=True))}


def time_of(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
