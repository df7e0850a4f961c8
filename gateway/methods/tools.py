"""tools/call: from the request to submit(), and from its answer to the agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

import orjson

from calls.models import Call
from calls.record.call_options import NO_OPTIONS, CallOptions
from calls.record.refusal import of_refusal
from calls.running.listeners import NO_LISTENER, CallListener
from core import abilities
from core.english import gettext as _
from core.ids import uuid7
from core.logs import CallContext
from gateway.call_request import CallRequest, SubmitResult
from gateway.methods import (
    input_requests,
    log_messages,
    own_tools,
    param_headers,
    pending,
    search_tools,
    sign_in,
    stream_resumption,
    tasks_legacy,
)
from gateway.protocol import handles, messages, sessions, tracing
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import invalid_params
from gateway.protocol.reply_stream import token_of
from gateway.submit import idempotency, wait
from gateway.submit.refuse import SIGN_IN, UNKNOWN, no_such_tool
from gateway.submit.submit import submit
from registry.methods import METHODS
from registry.names import RESERVED
from registry.publishing.published_tools import CALL, PublishedTool

# In `_meta`: what a client wants to hear, and which trace the call belongs to.
WISHES = frozenset((log_messages.META_LEVEL, *tracing.MEMBERS))


async def call(rpc: RpcRequest) -> bytes:
    name = rpc.message.params.get("name")
    if not isinstance(name, str):
        raise invalid_params("params.name must be a string.")
    if rpc.as_task:
        tasks_legacy.check(rpc)
    if name.startswith(RESERVED) and (own := own_tools.handler(rpc, name)):
        return await _call_own(rpc, name, own)
    envelope = None
    if name.startswith(RESERVED) and (searching := await search_tools.search_tool(rpc, name)):
        if searching in search_tools.LOOKS:
            return await _call_own(rpc, name, search_tools.LOOKS[searching])
        envelope = search_tools.open_envelope(rpc.message, searching)
        rpc.message, name = envelope.message, envelope.message.params["name"]

    tool = _tool(rpc, name) or await _newest_tool(rpc, name)
    rpc.structured = tool is not None and "outputSchema" not in tool.content
    parsed = rpc.message.params.get("arguments")
    parsed = {} if parsed is None else parsed
    # Of what stands in an envelope, a client knows no headers.
    if tool is not None and tool.shape.param_headers and rpc.client.modern and not envelope:
        param_headers.check(rpc.context, tool, parsed)
    arguments = messages.raw_arguments(rpc.message)
    if rpc.is_retry:
        return await pending.retried(rpc, digest=_digest(rpc, name, arguments))

    options = await options_of(rpc, tool)
    call_request = request_of(rpc, tool, name, arguments, parsed, options)
    if envelope and envelope.reads_only:
        wrong = search_tools.read_only_violations(rpc, tool)
        call_request = call_request._replace(extra_violations=wrong)
    if "inputResponses" in rpc.message.params:
        await sign_in.wait_for_person(rpc, tool)
    listener = listen(rpc, call_request)
    with CallContext(call_request.call_id):
        submitted = await submit(rpc.context.runtime, call_request, call_listener=listener)
    rpc.warnings = submitted.warnings
    if submitted.answer is not None and not (submitted.refusal or rpc.as_task):
        if submitted.answer.consent_page:
            return sign_in.ask(rpc, submitted.answer)
        return rpc.answered(submitted.answer)
    return await _reply_otherwise(rpc, call_request, submitted)


async def _call_own(
    rpc: RpcRequest, name: str, own: Callable[[RpcRequest], Awaitable[bytes]]
) -> bytes:
    """One of the gateway's own tools, which never run as tasks."""
    if rpc.as_task:
        raise tasks_legacy.task_forbidden(name)
    rpc.structured = True
    return await own(rpc)


async def _newest_tool(rpc: RpcRequest, name: str) -> PublishedTool | None:
    """Looks in the newest configuration: the tool may have been published a moment ago."""
    await rpc.look_again()
    return _tool(rpc, name)


def request_of(
    rpc: RpcRequest,
    tool: PublishedTool | None,
    name: str,
    arguments: bytes,
    parsed: Any,
    options: CallOptions,
) -> CallRequest:
    key, allow_duplicate = idempotency_of(rpc)
    context, client = rpc.context, rpc.client
    return CallRequest(
        call_id=uuid7(),
        bearer=context.bearer,
        toolset=context.toolset,
        tool=tool,
        tool_name=name,
        arguments=arguments,
        parsed=parsed,
        origin=Call.Origin.MCP,
        revision=client.revision,
        client=client.name,
        request_key=sessions.request_key(client.session, rpc.message.id) if client.session else "",
        key=key,
        allow_duplicate=allow_duplicate,
        background=rpc.as_task,
        as_task=rpc.as_task,
        responses=responses_of(rpc),
        options=options,
        may_reply_early=bool(options.abilities) or rpc.takes_tasks,
    )


async def _reply_otherwise(
    rpc: RpcRequest, call_request: CallRequest, submitted: SubmitResult
) -> bytes:
    """The reply to a call that did not simply end. Raises RpcError for errors of the request."""
    name, arguments = call_request.tool_name, call_request.arguments
    if submitted.refusal == SIGN_IN and (rpc.client.opens_urls or not rpc.as_task):
        assert submitted.answer is not None
        return sign_in.ask(rpc, submitted.answer)
    if submitted.refusal == "policy" and _is_hidden(rpc, call_request):
        raise invalid_params(f"Unknown tool: {name}", of_refusal(UNKNOWN).told(no_such_tool()))
    if submitted.refusal == UNKNOWN:
        raise invalid_params(f"Unknown tool: {name}", _refusal_data(submitted))
    if submitted.refusal == "key":
        raise invalid_params(submitted.reason, _refusal_data(submitted))
    if rpc.as_task:
        return await tasks_legacy.created(rpc, submitted)
    if submitted.refusal == "invalid":
        return _violations(rpc, submitted)
    if submitted.answer is not None:
        return rpc.answered(submitted.answer)
    return await pending_answer(rpc, submitted, digest=_digest(rpc, name, arguments))


async def pending_answer(rpc: RpcRequest, submitted: SubmitResult, *, digest: str) -> bytes:
    """The reply while the call has not ended."""
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


def responses_of(rpc: RpcRequest) -> bytes:
    """`inputResponses` without `requestState`, as JSON: a server that keeps no state may use it."""
    if not rpc.client.modern or "inputResponses" not in rpc.message.params:
        return b""
    given = sign_in.without_ours(input_requests.responses_of(rpc.message))
    return orjson.dumps(given) if given else b""


def _tool(rpc: RpcRequest, name: str) -> PublishedTool | None:
    """None also for items with a method of their own, such as prompts."""
    tools = rpc.context.tools
    found = tools.get(name) or tools.find_older(name)
    return found if found is not None and found.method == CALL else None


def listen(rpc: RpcRequest, call_request: CallRequest) -> CallListener:
    """Follows the call from here on: its client may resume its stream, or disconnect, which
    cancels the call in the modern revision alone, and not where a key says that it will retry."""
    call_id = call_request.call_id
    if rpc.client.session:
        stream_resumption.follow(rpc, call_id)
    rpc.reply.watch_disconnect(None if call_request.key else partial(_on_disconnect, rpc, call_id))
    level = call_request.options.log_level
    if rpc.progress is None and not level:
        return NO_LISTENER
    return CallListener(rpc.on_step, log_messages.relay(rpc, level))


def _on_disconnect(rpc: RpcRequest, call_id: UUID) -> Awaitable[object]:
    by = rpc.context.actor if rpc.client.modern else None
    return wait.on_disconnect(rpc.context.runtime, call_id, by)()


def idempotency_of(rpc: RpcRequest) -> tuple[str, bool]:
    """The client's idempotency key, and whether it allows a duplicate."""
    headers, meta = rpc.context.headers, rpc.message.meta
    header = headers.text(idempotency.KEY_HEADER)
    if header is None and idempotency.NAMES.isdisjoint(meta):
        return "", False
    if rpc.message.method in METHODS:
        # The protocol's own methods change nothing: a repeated request is simply answered anew.
        return "", False
    try:
        return idempotency.key_of(header, meta), idempotency.duplicate_allowed(meta)
    except idempotency.InvalidOption as error:
        raise invalid_params(str(error)) from error


def _digest(rpc: RpcRequest, name: str, arguments: bytes) -> str:
    return handles.request_digest(rpc.context.place, name, arguments)


def _is_hidden(rpc: RpcRequest, call_request: CallRequest) -> bool:
    tool = call_request.tool
    return tool is not None and search_tools.is_hidden(rpc.context, tool)


def _violations(rpc: RpcRequest, submitted: SubmitResult) -> bytes:
    """All of them, so that the agent can put everything right at once."""
    lines = [_("Nothing was sent: the arguments do not fit the tool's schema.")]
    lines += [f"- {violation}" for violation in submitted.violations]
    meta = {"call": str(submitted.call_id), "state": submitted.state, "executed": "no"}
    found = [{"path": v.path, "expected": v.expected} for v in submitted.violations]
    return rpc.sentence(
        "\n".join(lines), **meta, refusal=_refusal_data(submitted) | {"violations": found}
    )


def _refusal_data(submitted: SubmitResult) -> dict[str, Any]:
    answer = submitted.answer
    assert answer is not None
    assert answer.refusal is not None
    return answer.refusal.told(submitted.reason)
