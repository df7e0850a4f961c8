"""From a body to its answer: which revision it speaks, whether it keeps its rules, who answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from calls.room import QueueFull
from core.errors import RecordUnavailable
from gateway import (
    batches,
    calling,
    extensions,
    hearing,
    legacy,
    legacy_tasks,
    listening,
    listing,
    messages,
    modern,
    prompts,
    replies,
    resources,
    subscribing,
    task_methods,
)
from gateway.exchange import Client, Exchange, Turn
from gateway.headers import Headers
from gateway.messages import Message
from gateway.refusals import RETRY_LATER, RETRY_SOON, Refusal, full, unavailable
from gateway.revisions import (
    INTERNAL_ERROR,
    LAST_LEGACY,
    LEGACY,
    META_VERSION,
    MODERN,
)
from gateway.stream import Reply, accepted, progress_of, respond

log = logging.getLogger(__name__)

Handler = Callable[[Turn], Awaitable[bytes]]
RETRY = {429: (RETRY_LATER,), 503: (RETRY_SOON,)}


async def _ping(turn: Turn) -> bytes:
    return turn.result(b"{}")


# In every revision; what one alone knows stands with it.
_BOTH: dict[str, Handler] = {
    "tools/list": listing.tools,
    "tools/call": calling.call,
    "resources/list": resources.resources,
    "resources/templates/list": resources.templates,
    "resources/read": resources.read,
    "prompts/list": prompts.prompts,
    "prompts/get": prompts.get,
    "completion/complete": prompts.complete,
}
MODERN_METHODS: dict[str, Handler] = {
    "server/discover": listing.discover,
    **_BOTH,
    "subscriptions/listen": listening.listen,
    "tasks/get": task_methods.get,
    "tasks/update": task_methods.update,
    "tasks/cancel": task_methods.cancel,
}
LEGACY_METHODS: dict[str, Handler] = {
    **_BOTH,
    "ping": _ping,
    "logging/setLevel": hearing.set_level,
    "resources/subscribe": subscribing.subscribe,
    "resources/unsubscribe": subscribing.unsubscribe,
}


TASK_METHODS: dict[str, Handler] = {
    "tasks/get": legacy_tasks.get,
    "tasks/result": legacy_tasks.result,
    "tasks/list": legacy_tasks.listed,
    "tasks/cancel": legacy_tasks.cancel,
}
_METHODS = dict.fromkeys(LEGACY, LEGACY_METHODS) | {
    MODERN: MODERN_METHODS,
    LAST_LEGACY: LEGACY_METHODS | TASK_METHODS,
}


async def answer(exchange: Exchange, body: bytes, receive: Any, send: Any) -> None:
    message = messages.parse_plain(body)
    if message is None:
        value = messages.parse(body)
        if isinstance(value, list):
            await _answer_batch(exchange, messages.batch(value, body.decode()), receive, send)
            return
        message = messages.message(value, body.decode())
    try:
        await _answer_one(exchange, message, receive, send)
    except Refusal as refusal:
        refusal.id = message.id or refusal.id
        raise


async def _answer_one(exchange: Exchange, message: Message, receive: Any, send: Any) -> None:
    is_new = is_modern(message, exchange.headers)
    if not message.is_request:
        await _hear(exchange, message, is_new)
        await accepted(send)
    elif message.method == "initialize" and not is_new:
        body, session = legacy.begin(message, exchange.bearer.agent_id)
        await respond(send, 200, body, ((legacy.SESSION, session),))
    else:
        client = _client_of(exchange, message, is_new)
        reply = Reply(receive, send)
        status, body = await _answered(exchange, client, message, reply)
        await reply.finish(status, body, RETRY.get(status, ()))


async def _hear(exchange: Exchange, message: Message, is_new: bool) -> None:
    if is_new:
        modern.hear(message, exchange.headers)
    else:
        client = legacy.client_of(exchange.headers, exchange.bearer.agent_id)
        await legacy.hear(exchange, client, message)


def _client_of(exchange: Exchange, message: Message, is_new: bool) -> Client:
    if is_new:
        return modern.client_of(message, exchange.headers, exchange.known)
    return legacy.client_of(exchange.headers, exchange.bearer.agent_id)


def is_modern(message: Message, headers: Headers) -> bool:
    """Whoever names a revision that needs no handshake, in the body or in the header."""
    inside = message.meta.get(META_VERSION)
    outside = headers.text(modern.VERSION)
    if inside is not None:
        return inside not in LEGACY or outside not in (None, inside)
    return outside is not None and outside not in LEGACY and message.method != "initialize"


async def _answered(
    exchange: Exchange, client: Client, message: Message, reply: Reply
) -> tuple[int, bytes]:
    try:
        handler = _METHODS[client.revision].get(message.method)
        if handler is None:
            exchange = await extensions.served(exchange, message.method)
            handler = extensions.ask
        progress = progress_of(reply, message.meta.get("progressToken"))
        turn = Turn(exchange, client, message, reply, progress)
        body = await handler(turn)
        return turn.status, body
    except Refusal as refusal:
        # Earlier revisions carry what is wrong with a request in a reply that is well.
        return refusal.status if client.modern else 200, refusal.body(message.id)
    except RecordUnavailable as error:
        return 503, unavailable(error).body(message.id)
    except QueueFull as error:
        said = full(error)
        return said.status, said.body(message.id)
    except Exception:
        log.exception("%s failed", message.method)
        failed = Refusal(500, "The gateway failed; see its log.", code=INTERNAL_ERROR)
        return failed.status, failed.body(message.id)


async def _answer_batch(exchange: Exchange, batch: list[Message], receive: Any, send: Any) -> None:
    client = batches.client_of(exchange, batch)
    for message in batch:
        if not message.is_request:
            await legacy.hear(exchange, client, message)
    requests = [message for message in batch if message.is_request]
    if not requests:
        await accepted(send)
        return
    reply = Reply(receive, send)
    answers = await asyncio.gather(
        *(_answered(exchange, client, message, reply) for message in requests)
    )
    await reply.finish(200, replies.batch([body for _, body in answers]))
