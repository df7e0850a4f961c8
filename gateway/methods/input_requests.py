"""Passes a server's input requests on to the agent, and the answers back.

The agent of today is answered with the questions and comes again with its answers; one of an
earlier revision is asked on the stream of its call, and posts its answers to whichever process.

Sources: MCP 2026-07-28, basic/patterns/mrtr; 2025-11-25, basic/transports.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from calls.running import input_relay
from calls.running.input_relay import InputQuestion, InvalidAnswer
from core import abilities
from core.abilities import InputAnswer
from core.english import gettext as _
from gateway.protocol import handles, replies
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import invalid_params
from gateway.protocol.messages import RpcMessage
from gateway.protocol.revisions import RELATED_TASK


async def of(rpc: RpcRequest, call_id: UUID) -> list[InputQuestion]:
    """The call's open input requests, if this client can answer all of them."""
    return list(await _in_thread(input_relay.open_ones, call_id, rpc.client.abilities))


def input_required(
    rpc: RpcRequest, state: handles.RequestState, asked: list[InputQuestion]
) -> bytes:
    """An `input_required` result, which the client answers by repeating its request."""
    state = handles.RequestState(
        state.call_id,
        state.digest,
        state.round + 1,
        int(time.time()) + handles.LASTS_S,
        tuple(one.id for one in asked),
        rpc.logged,
    )
    members: dict[str, Any] = {
        "resultType": "input_required",
        "inputRequests": {one.key: one.request for one in asked},
        "requestState": handles.seal_state(state, rpc.agent_id),
        "_meta": {replies.CALL: str(state.call_id)},
    }
    return rpc.result(orjson.dumps(members))


def push(rpc: RpcRequest, call_id: UUID, asked: list[InputQuestion], *, task: str = "") -> None:
    """On the stream of the call, as requests of ours; of a task of 2025-11-25, which names it."""
    for one in asked:
        # One after the other: whoever loses the stream in between is asked the rest.
        rpc.asked_last = one.id
        request_id = handles.question_id(call_id, one.id, rpc.agent_id)
        asks = _of_task(one.request, task) if task else one.request
        request = {"jsonrpc": "2.0", "id": request_id, **_named(asks, request_id)}
        rpc.reply.push(orjson.dumps(request))


def _of_task(request: dict[str, Any], task: str) -> dict[str, Any]:
    params = request.get("params") or {}
    meta = {**(params.get("_meta") or {}), RELATED_TASK: {"taskId": task}}
    return {**request, "params": {**params, "_meta": meta}}


def _named(request: dict[str, Any], name: str) -> dict[str, Any]:
    """In 2025-11-25 a page to open has a name, which no other revision gives it."""
    params = request.get("params")
    if not isinstance(params, dict) or params.get("mode") != abilities.URL:
        return request
    return request | {"params": {"elicitationId": name} | params}


async def take_responses(rpc: RpcRequest, state: handles.RequestState) -> None:
    """Take the answers that come with a round. Raises the refusal of what is none, and of answers
    that were given before."""
    responses = responses_of(rpc.message)
    if not state.questions or not responses:
        return
    asked = await _in_thread(input_relay.questions_of, state.call_id, state.questions)
    named = {one.key: one for one, _open in asked if one.key in responses}
    if named and not any(is_open for one, is_open in asked if one.key in named):
        raise invalid_params(_("This requestState was used before: its questions are answered."))
    await _take(rpc.context, state.call_id, named, responses)


async def take_task_responses(rpc: RpcRequest, call_id: UUID, responses: Mapping[str, Any]) -> None:
    named = {one.name: one for one in await of(rpc, call_id) if one.name in responses}
    usable = {name: one for name, one in named.items() if isinstance(responses[name], dict)}
    await _take(rpc.context, call_id, usable, responses)


async def _take(
    context: RequestContext,
    call_id: UUID,
    named: Mapping[str, InputQuestion],
    responses: Mapping[str, Any],
) -> None:
    answers = {}
    for name, one in named.items():
        answers[one.id] = InputAnswer(responses[name])
        try:
            input_relay.check(one, answers[one.id])
        except InvalidAnswer as error:
            raise invalid_params(f"inputResponses: {error}") from error
    if answers:
        await _in_thread(input_relay.answer, call_id, answers, by=context.actor)


def responses_of(message: RpcMessage) -> dict[str, Any]:
    """Raises invalid params for what is no answer."""
    if "inputResponses" not in message.params:
        return {}
    responses = message.params["inputResponses"]
    if not isinstance(responses, dict) or not all(isinstance(r, dict) for r in responses.values()):
        raise invalid_params("params.inputResponses must be an object of objects.")
    return responses


async def posted(context: RequestContext, message: RpcMessage) -> None:
    """A legacy client's answer to a request of ours; whatever else it answers is nobody's."""
    agent_id = context.bearer.agent_id
    found = handles.question_of(orjson.loads(message.id), agent_id)
    if found is None:
        return
    call_id, question = found
    is_error = "error" in message.params
    given = InputAnswer(message.params["error" if is_error else "result"], is_error=is_error)
    asked = await _in_thread(input_relay.questions_of, call_id, [question])
    if not asked:
        return
    try:
        input_relay.check(asked[0][0], given)
    except InvalidAnswer as error:
        given = InputAnswer({"code": -32602, "message": str(error)}, is_error=True)
    await _in_thread(input_relay.answer, call_id, {question: given}, by=context.actor)


async def _in_thread(verb: Callable[..., Any], *given: Any, **more: Any) -> Any:
    def closing() -> Any:
        try:
            return verb(*given, **more)
        finally:
            connection.close()

    return await asyncio.to_thread(closing)
