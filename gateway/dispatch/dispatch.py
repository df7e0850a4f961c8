"""Dispatches a body: which revision it speaks, whether it is valid, and which method answers it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from calls.queue.queue_limits import QueueFull
from core import outage, telemetry
from core.errors import RecordUnavailable
from core.request_ids import note_trace
from gateway.dispatch import batches, handshake, request_spans
from gateway.methods import (
    extensions,
    lists,
    log_messages,
    prompts,
    resources,
    tasks,
    tasks_legacy,
    tools,
)
from gateway.protocol import legacy, messages, modern, replies
from gateway.protocol.client import Client
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import RETRY_LATER, RETRY_SOON, RpcError, full, unavailable
from gateway.protocol.headers import Headers
from gateway.protocol.messages import RpcMessage
from gateway.protocol.reply_stream import ReplyStream, accepted, progress_of, respond
from gateway.protocol.revisions import INTERNAL_ERROR, LAST_LEGACY, LEGACY, META_VERSION, MODERN
from gateway.subscriptions import resource_updates, streams

log = logging.getLogger(__name__)

Handler = Callable[[RpcRequest], Awaitable[bytes]]
AWAY = "The record cannot be read or written right now. Try again soon."
RETRY = {429: (RETRY_LATER,), 503: (RETRY_SOON,)}


async def _ping(rpc: RpcRequest) -> bytes:
    return rpc.result(b"{}")


# In every revision; what one alone knows stands with it.
_BOTH: dict[str, Handler] = {
    "tools/list": lists.tools,
    "tools/call": tools.call,
    "resources/list": resources.resources,
    "resources/templates/list": resources.templates,
    "resources/read": resources.read,
    "prompts/list": prompts.prompts,
    "prompts/get": prompts.get,
    "completion/complete": prompts.complete,
}
MODERN_METHODS: dict[str, Handler] = {
    "server/discover": lists.discover,
    **_BOTH,
    "subscriptions/listen": streams.listen,
    "tasks/get": tasks.get,
    "tasks/update": tasks.update,
    "tasks/cancel": tasks.cancel,
}
LEGACY_METHODS: dict[str, Handler] = {
    **_BOTH,
    "ping": _ping,
    "logging/setLevel": log_messages.set_level,
    "resources/subscribe": resource_updates.subscribe,
    "resources/unsubscribe": resource_updates.unsubscribe,
}


TASK_METHODS: dict[str, Handler] = {
    "tasks/get": tasks_legacy.get,
    "tasks/result": tasks_legacy.result,
    "tasks/list": tasks_legacy.list_tasks,
    "tasks/cancel": tasks_legacy.cancel,
}
_METHODS = dict.fromkeys(LEGACY, LEGACY_METHODS) | {
    MODERN: MODERN_METHODS,
    LAST_LEGACY: LEGACY_METHODS | TASK_METHODS,
}
KNOWN_METHODS = frozenset(method for methods in _METHODS.values() for method in methods)


async def answer(context: RequestContext, body: bytes, receive: Any, send: Any) -> None:
    message = messages.parse_plain(body)
    if message is None:
        value = messages.parse(body)
        if isinstance(value, list):
            await _answer_batch(context, messages.batch(value, body.decode()), receive, send)
            return
        message = messages.message(value, body.decode())
    try:
        is_new = is_modern(message, context.headers)
        if not message.is_request:
            await _hear(context, message, is_new)
            await accepted(send)
        elif message.method == "initialize" and not is_new:
            body, session = handshake.begin(message, context)
            await respond(send, 200, body, ((legacy.SESSION, session),))
        else:
            client = (
                modern.client_of(message, context.headers, context.known)
                if is_new
                else legacy.client_of(context.headers, context.bearer.agent_id)
            )
            reply = ReplyStream(receive, send)
            # No coroutine of its own, where nothing is traced: each costs every call.
            answer = _answered_in_span if telemetry.is_on else _answered
            status, body = await answer(context, client, message, reply)
            await reply.finish(status, body, RETRY.get(status, ()))
    except RpcError as refusal:
        refusal.id = message.id or refusal.id
        raise


async def _hear(context: RequestContext, message: RpcMessage, is_new: bool) -> None:
    if is_new:
        modern.hear(message, context.headers)
    else:
        client = legacy.client_of(context.headers, context.bearer.agent_id)
        await handshake.hear(context, client, message)


def is_modern(message: RpcMessage, headers: Headers) -> bool:
    """Whether body or header names a revision without handshake."""
    inside = message.meta.get(META_VERSION)
    outside = headers.text(modern.VERSION)
    if inside is not None:
        return inside not in LEGACY or outside not in (None, inside)
    return outside is not None and outside not in LEGACY and message.method != "initialize"


async def _answered_in_span(
    context: RequestContext, client: Client, message: RpcMessage, reply: ReplyStream
) -> tuple[int, bytes]:
    with request_spans.opened(client, message) as span:
        note_trace(telemetry.current_trace_id())
        status, body = await _answered(context, client, message, reply)
        request_spans.note_reply(span, status, body)
        return status, body


async def _answered(
    context: RequestContext, client: Client, message: RpcMessage, reply: ReplyStream
) -> tuple[int, bytes]:
    try:
        handler = _METHODS[client.revision].get(message.method)
        if handler is None:
            context = await extensions.served(context, message.method)
            handler = extensions.call_method
        token = message.meta.get("progressToken")
        progress = None if token is None else progress_of(reply, token)
        rpc = RpcRequest(context, client, message, reply, progress)
        body = await handler(rpc)
        return rpc.status, body
    except RpcError as refusal:
        # Earlier revisions carry what is wrong with a request in a reply that is well.
        return refusal.status if client.modern else 200, refusal.body(message.id)
    except RecordUnavailable as error:
        return 503, unavailable(error).body(message.id)
    except outage.AWAY as error:
        log.warning("%s: the database is away: %s", message.method, str(error).strip())
        return 503, unavailable(RecordUnavailable(AWAY)).body(message.id)
    except QueueFull as error:
        said = full(error)
        return said.status, said.body(message.id)
    except Exception:
        log.exception("%s failed", message.method)
        failed = RpcError(500, "The gateway failed; see its log.", code=INTERNAL_ERROR)
        return failed.status, failed.body(message.id)


async def _answer_batch(
    context: RequestContext, batch: list[RpcMessage], receive: Any, send: Any
) -> None:
    client = batches.client_of(context, batch)
    for message in batch:
        if not message.is_request:
            await handshake.hear(context, client, message)
    requests = [message for message in batch if message.is_request]
    if not requests:
        await accepted(send)
        return
    reply = ReplyStream(receive, send)
    answer = _answered_in_span if telemetry.is_on else _answered
    answers = await asyncio.gather(
        *(answer(context, client, message, reply) for message in requests)
    )
    await reply.finish(200, replies.batch([body for _, body in answers]))
