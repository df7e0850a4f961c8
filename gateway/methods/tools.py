"""tools/call: from the request to submit(), and from its answer to the agent."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from django.utils.translation import gettext as _

from calls.models import Call
from calls.record.call_options import NO_OPTIONS, CallOptions
from calls.running.listeners import NO_LISTENER, CallListener
from core import abilities
from core.logs import CallContext
from gateway.call_request import CallRequest, SubmitResult
from gateway.methods import (
    input_requests,
    log_messages,
    own_tools,
    param_headers,
    pending,
    stream_resumption,
    tasks_legacy,
)
from gateway.protocol import handles, messages, sessions, tracing
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import invalid_params
from gateway.protocol.reply_stream import token_of
from gateway.submit import idempotency, wait
from gateway.submit.submit import submit
from registry.names import RESERVED
from registry.publishing.published_catalogue import CALL, PublishedTool

# In `_meta`: what a client wants to hear, and which trace the call belongs to.
WISHES = frozenset((log_messages.META_LEVEL, *tracing.MEMBERS))


async def call(rpc: RpcRequest) -> bytes:
    name = rpc.message.params.get("name")
    if not isinstance(name, str):
        raise invalid_params("params.name must be a string.")
    if rpc.as_task:
        tasks_legacy.check(rpc)
    if name.startswith(RESERVED) and (own := own_tools.handler(rpc, name)):
        if rpc.as_task:
            raise tasks_legacy.never(name)
        rpc.structured = True
        return await own(rpc)

    tool = _tool(rpc, name)
    if tool is None:
        await rpc.look_again()
        tool = _tool(rpc, name)
    rpc.structured = tool is not None and "outputSchema" not in tool.content
    parsed = rpc.message.params.get("arguments")
    parsed = {} if parsed is None else parsed
    if rpc.client.modern and tool is not None and tool.shape.param_headers:
        param_headers.check(rpc.context, tool, parsed)
    arguments = messages.raw_arguments(rpc.message)
    if rpc.client.modern and "requestState" in rpc.message.params:
        return await pending.retried(rpc, digest=_digest(rpc, name, arguments))

    key, again = idempotency_of(rpc)
    options = await options_of(rpc, tool)
    call_request = CallRequest(
        bearer=rpc.context.bearer,
        toolset=rpc.context.toolset,
        tool=tool,
        tool_name=name,
        arguments=arguments,
        parsed=parsed,
        origin=Call.Origin.MCP,
        revision=rpc.client.revision,
        client=rpc.client.name,
        request_key=key_of(rpc) if rpc.client.session else "",
        key=key,
        again=again,
        background=rpc.as_task,
        as_task=rpc.as_task,
        responses=responses_of(rpc),
        options=options,
        may_reply_early=bool(options.abilities) or rpc.takes_tasks,
    )
    watch(rpc, call_request)
    listener = listener_of(rpc, call_request)
    with CallContext(call_request.call_id):
        submitted = await submit(rpc.context.runtime, call_request, call_listener=listener)
    if submitted.refusal == "unknown_tool":
        raise invalid_params(f"Unknown tool: {name}", _told(submitted))
    if submitted.refusal == "key":
        raise invalid_params(submitted.reason, _told(submitted))
    if rpc.as_task:
        return await tasks_legacy.created(rpc, submitted)
    if submitted.refusal == "invalid":
        return _violations(rpc, submitted)
    if submitted.answer is not None:
        return rpc.answered(submitted.answer)
    return await pending_answer(rpc, submitted, digest=_digest(rpc, name, arguments))


async def pending_answer(rpc: RpcRequest, submitted: SubmitResult, *, digest: str) -> bytes:
    """What its agent gets until there is an answer."""
    stream_resumption.follow(rpc, submitted.call_id)
    return await pending.answer(
        rpc,
        call_id=submitted.call_id,
        state=submitted.state,
        digest=digest,
        early_reply=submitted.early_reply,
    )


async def options_of(rpc: RpcRequest, tool: PublishedTool | None) -> CallOptions:
    client = rpc.client
    if client.modern and not (
        client.abilities or rpc.takes_tasks or WISHES & rpc.message.meta.keys()
    ):
        return NO_OPTIONS
    return CallOptions(
        abilities=abilities.relayed(client.abilities, tool.relays) if tool else (),
        takes_tasks=rpc.takes_tasks or rpc.as_task,
        log_level=await log_messages.wanted(rpc),
        session=sessions.session_key(client.session) if client.hears_of_pages else "",
        trace=tracing.of(rpc.message.meta),
        progress_token=token_of(rpc.message.meta.get("progressToken")) if rpc.as_task else None,
    )


def listener_of(rpc: RpcRequest, call_request: CallRequest) -> CallListener:
    level = call_request.options.log_level
    if rpc.progress is None and not level:
        return NO_LISTENER
    return CallListener(rpc.on_step, log_messages.relay(rpc, level))


def responses_of(rpc: RpcRequest) -> bytes:
    """What comes as answers with no question of ours: the server may know what to make of it."""
    if not rpc.client.modern or "inputResponses" not in rpc.message.params:
        return b""
    given = input_requests.responses_of(rpc.message)
    return orjson.dumps(given) if given else b""


def _tool(rpc: RpcRequest, name: str) -> PublishedTool | None:
    """What is asked by a method of its own is no tool here."""
    tools = rpc.context.tools
    found = tools.get(name) or tools.older.get(name)
    return found if found is not None and found.method == CALL else None


def watch(rpc: RpcRequest, call_request: CallRequest) -> None:
    """From here on its client may come back to it, or go away: only the modern revision says that
    this cancels it, and a key says that it asks again."""
    call_id = call_request.call_id
    if rpc.client.session:
        stream_resumption.follow(rpc, call_id)
    rpc.reply.watch_disconnect(None if call_request.key else partial(_on_disconnect, rpc, call_id))


def _on_disconnect(rpc: RpcRequest, call_id: UUID) -> Awaitable[object]:
    by = rpc.context.actor if rpc.client.modern else None
    return wait.on_disconnect(rpc.context.runtime, call_id, by)()


def idempotency_of(rpc: RpcRequest) -> tuple[str, bool]:
    """Its own key for this one call; and whether it is meant although it is the same again."""
    headers, meta = rpc.context.headers, rpc.message.meta
    header = headers.text(idempotency.KEY_HEADER)
    if header is None and idempotency.NAMES.isdisjoint(meta):
        return "", False
    try:
        return idempotency.key_of(header, meta), idempotency.again_of(meta)
    except idempotency.InvalidOption as error:
        raise invalid_params(str(error)) from error


def key_of(rpc: RpcRequest) -> str:
    return sessions.request_key(rpc.client.session, rpc.message.id)


def _digest(rpc: RpcRequest, name: str, arguments: bytes) -> str:
    return handles.asked(rpc.context.place, name, arguments)


def _violations(rpc: RpcRequest, submitted: SubmitResult) -> bytes:
    """All of them, so that the agent can put everything right at once."""
    lines = [_("Nothing was sent: the arguments do not fit the tool's schema.")]
    lines += [f"- {violation}" for violation in submitted.violations]
    meta = {"call": str(submitted.call_id), "state": submitted.state, "executed": "no"}
    found = [{"path": v.path, "expected": v.expected} for v in submitted.violations]
    return rpc.sentence("\n".join(lines), **meta, refusal=_told(submitted) | {"violations": found})


def _told(submitted: SubmitResult) -> dict[str, Any]:
    answer = submitted.answer
    assert answer is not None
    assert answer.refusal is not None
    return answer.refusal.told(submitted.reason)
