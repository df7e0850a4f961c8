"""Streams that break and are taken up again, at whichever process: the call is a row, and each
event of its stream says which call it belongs to and how far it got.

Source: MCP 2025-11-25, basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from calls.running.log_book import FIRST, Place
from core import seal
from core.errors import RecordUnavailable
from core.seal import Unsealable
from gateway.methods import log_messages, pending
from gateway.methods.named_calls import find_named
from gateway.protocol import large_results, legacy, sessions
from gateway.protocol.client import Client
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import RpcError, invalid_request, unavailable
from gateway.protocol.messages import RpcMessage
from gateway.protocol.reply_stream import ProgressRelay, ReplyStream
from gateway.protocol.revisions import LAST_LEGACY
from gateway.submit import wait

LAST_EVENT = b"last-event-id"
# It comes back in a header.
ID_MAX = 200
_PURPOSE = "event id"


@dataclass(frozen=True, slots=True)
class CallEventIds:
    """How the events of one call's stream are named."""

    rpc: RpcRequest
    call_id: UUID

    def first(self) -> str:
        """The place before everything that is told."""
        return self._sealed(None, 0, FIRST)

    def here(self) -> str:
        """The place behind what was told by now."""
        progress = self.rpc.progress
        last = progress.last if progress else None
        return self._sealed(last, self.rpc.asked_last, self.rpc.logged)

    def _sealed(self, progress: float | None, asked: int, logged: Place) -> str:
        message = self.rpc.message
        token = message.meta.get("progressToken")
        most = message.meta.get(large_results.MAX_BYTES)
        asked_by = (message.id.decode(), message.method, token, most)
        value = (self.call_id, *asked_by, progress, asked, logged, self.rpc.brings)
        place = _place(self.rpc.client)
        return seal.to_text(seal.seal(_PURPOSE, orjson.dumps(value), place=place))


def follow(rpc: RpcRequest, call_id: UUID) -> None:
    """Let the client come back to this call's stream, where its revision knows that."""
    if rpc.client.revision != LAST_LEGACY or not rpc.client.session:
        return
    token = rpc.message.meta.get("progressToken")
    if len(rpc.message.id) + len(str(token)) <= ID_MAX:
        rpc.reply.follow(CallEventIds(rpc, call_id))


async def resume(context: RequestContext, receive: Any, send: Any) -> None:
    """Sends the events that the client missed, and then the rest, on a new stream."""
    client = legacy.client_of(context.headers, context.bearer.agent_id)
    rpc, call_id, logged = _taken_up(context, client, ReplyStream(receive, send))
    if await find_named(context, call_id) is None:
        raise _no_stream()
    await log_messages.go_on(rpc, logged)
    rpc.reply.follow(CallEventIds(rpc, call_id))
    rpc.reply.begin()
    rpc.reply.watch_disconnect(wait.on_disconnect(context.runtime, call_id, None))
    try:
        body = await pending.taken_up(rpc, call_id)
    except RecordUnavailable as error:
        body = unavailable(error).body(rpc.message.id)
    await rpc.reply.finish(200, body)


def _taken_up(
    context: RequestContext, client: Client, reply: ReplyStream
) -> tuple[RpcRequest, UUID, Place]:
    text = context.headers.text(LAST_EVENT) or ""
    try:
        value = orjson.loads(seal.unseal(_PURPOSE, seal.from_text(text), place=_place(client)))
        call_id, request_id, method, token, most, progress, asked, logged, brings = value
    except (Unsealable, ValueError):
        raise _no_stream() from None
    meta = {} if most is None else {large_results.MAX_BYTES: most}
    if token is not None:
        meta["progressToken"] = token
    message = RpcMessage(request_id.encode(), method, {}, "", meta)
    going_on = None if token is None else ProgressRelay(reply, token, last=progress)
    rpc = RpcRequest(context, client, message, reply, going_on, asked_last=asked, brings=brings)
    return rpc, UUID(call_id), (logged[0], logged[1])


def _place(client: Client) -> str:
    """An id opens in the session that it was made in, and so for its agent."""
    return f"session:{sessions.session_key(client.session)}"


def _no_stream() -> RpcError:
    return invalid_request("No stream of this session has such an event.")
