"""Sealed handles for agents: task ids and request states. An agent cannot forge them, use another
agent's, or change their content."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from uuid import UUID

import orjson

from calls.record.listed_tasks import KEPT_S
from calls.running.log_book import FIRST, Place
from core import seal
from core.seal import Unsealable
from gateway.protocol.errors import invalid_params

LASTS_S = KEPT_S
_MAC = 16
NO_TASK = "There is no such task."


def task_id(call_id: UUID, agent_id: int) -> str:
    return seal.to_text(call_id.bytes + seal.sign("task id", _task(call_id, agent_id))[:_MAC])


def call_of_task(text: object, agent_id: int) -> UUID:
    """The same refusal for a malformed, unknown and foreign id."""
    try:
        value = seal.from_text(text) if isinstance(text, str) else b""
    except ValueError:
        value = b""
    if len(value) == 16 + _MAC:
        call_id = UUID(bytes=value[:16])
        if seal.is_signature("task id", _task(call_id, agent_id), value[16:]):
            return call_id
    raise invalid_params(NO_TASK)


def _task(call_id: UUID, agent_id: int) -> bytes:
    return call_id.bytes + b"%d" % agent_id


def question_id(call_id: UUID, question: int, agent_id: int) -> str:
    """The id of our request to a legacy client, whose answer may reach any process."""
    value = call_id.bytes + question.to_bytes(8)
    return seal.to_text(value + seal.sign("question id", value + b"%d" % agent_id)[:_MAC])


def question_of(request_id: object, agent_id: int) -> tuple[UUID, int] | None:
    try:
        value = seal.from_text(request_id) if isinstance(request_id, str) else b""
    except ValueError:
        return None
    shown, mac = value[:-_MAC], value[-_MAC:]
    if len(shown) != 16 + 8:
        return None
    if not seal.is_signature("question id", shown + b"%d" % agent_id, mac):
        return None
    return UUID(bytes=shown[:16]), int.from_bytes(shown[16:])


@dataclass(frozen=True, slots=True)
class RequestState:
    """A round of a call that its client comes back for: people decide, or its server asks
    something. Travels through the client, sealed."""

    call_id: UUID
    # What was asked, so that it cannot be claimed for another request.
    digest: str
    round: int
    expires_at: int
    # The questions that this round asks, by the ids of their rows.
    questions: tuple[int, ...] = ()
    # The first line of its server's log that was not told.
    logged: Place = FIRST


def request_digest(place: str, tool: str, arguments: bytes) -> str:
    return hashlib.sha256(b"\0".join((place.encode(), tool.encode(), arguments))).hexdigest()


def seal_state(state: RequestState, agent_id: int) -> str:
    asked = (
        *(state.call_id, state.digest, state.round, state.expires_at),
        *(state.questions, state.logged),
    )
    value = orjson.dumps(asked)
    return seal.to_text(seal.seal("request state", value, place=f"agent:{agent_id}"))


def unseal_state(text: object, agent_id: int, *, digest: str) -> RequestState:
    """Source: MCP 2026-07-28, basic/patterns/mrtr, "Server Requirements"."""
    if not isinstance(text, str):
        raise invalid_params("requestState must be a string.")
    try:
        value = seal.unseal("request state", seal.from_text(text), place=f"agent:{agent_id}")
    except (Unsealable, ValueError):
        raise invalid_params("This requestState was altered, or given to another agent.") from None
    call_id, for_digest, rounds, expires_at, *more = orjson.loads(value)
    if for_digest != digest:
        raise invalid_params("This requestState belongs to another tool or other arguments.")
    if expires_at < time.time():
        raise invalid_params("This requestState has expired: call again without it.")
    # Of before an update, they may say less.
    questions, (fence, number) = (*more, (), FIRST)[0], (*more[1:], FIRST)[0]
    place = (fence, number)
    return RequestState(UUID(call_id), for_digest, rounds, expires_at, tuple(questions), place)
