"""The gateway's own tool: wait for a call that was answered with "not yet"."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings

from gateway import lookups, pending, waiting
from gateway.exchange import Turn

AWAIT_CALL: dict[str, Any] = {
    "name": "countersign.await_call",
    "title": "Wait for a call",
    "description": (
        "Wait for the outcome of a call that a person had to approve or that took long, and get "
        "its result. Takes the call_id that the earlier answer named. If there is still no "
        "outcome after about 45 seconds it says so: then use it again."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "call_id": {
                "type": "string",
                "format": "uuid",
                "description": "The call to wait for, one of your own.",
            }
        },
        "required": ["call_id"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}


async def await_call(turn: Turn) -> bytes:
    """No call of its own: it reads what another one came to."""
    call_id = _named(turn.message.params.get("arguments"))
    found = call_id and await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)
    if not found:
        return turn.sentence(
            "No call of yours has this call_id. Give the one that the earlier answer named."
        )
    turn.reply.linger()
    answer = found.seen.answer or await waiting.wait(
        turn.runtime, found.call_id, seconds=settings.HOLD_S, on_step=turn.on_step
    )
    return turn.answered(answer) if answer else await pending.not_yet(turn, found.call_id)


def _named(arguments: Any) -> UUID | None:
    try:
        return UUID(arguments["call_id"])
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
