"""Streams that break and are taken up again, at whichever process: the call is a row, and each
event of its stream says which call it belongs to and how far it got.

Source: MCP 2025-11-25, basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from calls.logs import FIRST, Place
from core import seal
from core.errors import RecordUnavailable
from core.seal import Unsealable
from gateway import hearing, large, legacy, lookups, pending, sessions, waiting
from gateway.exchange import Client, Exchange, Turn
from gateway.messages import Message
from gateway.refusals import Refusal, invalid_request, unavailable
from gateway.revisions import LAST_LEGACY
from gateway.stream import Progress, Reply

LAST_EVENT = b"last-event-id"
# It comes back in a header.
ID_MAX = 200
_PURPOSE = "event id"


@dataclass(frozen=True, slots=True)
class Trail:
    """How the events of one call's stream are named."""

    turn: Turn
    call_id: UUID

    def first(self) -> str:
        """The place before everything that is told."""
        return self._sealed(None, 0, FIRST)

    def here(self) -> str:
        """The place behind what was told by now."""
        progress = self.turn.progress
        last = progress.last if progress else None
        return self._sealed(last, self.turn.asked_last, self.turn.logged)

    def _sealed(self, progress: float | None, asked: int, logged: Place) -> str:
        message = self.turn.message
        token = message.meta.get("progressToken")
        most = message.meta.get(large.MAX_BYTES)
        asked_by = (message.id.decode(), message.method, token, most)
        value = (self.call_id, *asked_by, progress, asked, logged, self.turn.brings)
        place = _place(self.turn.client)
        return seal.to_text(seal.seal(_PURPOSE, orjson.dumps(value), place=place))


def follow(turn: Turn, call_id: UUID) -> None:
    """Let the client come back to this call's stream, where its revision knows that."""
    if turn.client.revision != LAST_LEGACY or not turn.client.session:
        return
    token = turn.message.meta.get("progressToken")
    if len(turn.message.id) + len(str(token)) <= ID_MAX:
        turn.reply.follow(Trail(turn, call_id))


async def resume(exchange: Exchange, receive: Any, send: Any) -> None:
    """What the client missed, and the rest, on a stream of its own."""
    client = legacy.client_of(exchange.headers, exchange.bearer.agent_id)
    turn, call_id, logged = _taken_up(exchange, client, Reply(receive, send))
    if await lookups.own(exchange.runtime, call_id, agent_id=turn.agent_id) is None:
        raise _no_stream()
    await hearing.go_on(turn, logged)
    turn.reply.follow(Trail(turn, call_id))
    turn.reply.begin()
    turn.reply.linger(waiting.gone(exchange.runtime, call_id, None))
    try:
        body = await pending.taken_up(turn, call_id)
    except RecordUnavailable as error:
        body = unavailable(error).body(turn.message.id)
    await turn.reply.finish(200, body)


def _taken_up(exchange: Exchange, client: Client, reply: Reply) -> tuple[Turn, UUID, Place]:
    text = exchange.headers.text(LAST_EVENT) or ""
    try:
        value = orjson.loads(seal.unseal(_PURPOSE, seal.from_text(text), place=_place(client)))
        call_id, request_id, method, token, most, progress, asked, logged, brings = value
    except (Unsealable, ValueError):
        raise _no_stream() from None
    meta = {} if most is None else {large.MAX_BYTES: most}
    if token is not None:
        meta["progressToken"] = token
    message = Message(request_id.encode(), method, {}, "", meta)
    going_on = None if token is None else Progress(reply, token, last=progress)
    turn = Turn(exchange, client, message, reply, going_on, asked_last=asked, brings=brings)
    return turn, UUID(call_id), (logged[0], logged[1])


def _place(client: Client) -> str:
    """An id opens in the session that it was made in, and so for its agent."""
    return f"session:{sessions.session_key(client.session)}"


def _no_stream() -> Refusal:
    return invalid_request("No stream of this session has such an event.")
