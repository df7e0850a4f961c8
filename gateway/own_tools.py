"""The gateway's own tools: what agents want to know and to say of their calls.

None makes a call of its own. What one of them changes is an entry of the call that it changes.
Somebody else's call, an unknown one and what is no id are all told the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext as _

from approvals import talk
from calls.logs import FIRST
from calls.models import Call
from calls.states import State
from gateway import hearing, lookups, pending, replies, resuming, waiting
from gateway.described import described, in_short
from gateway.exchange import Turn
from gateway.explaining import explain
from gateway.lookups import Found
from gateway.own_definitions import PREFIX
from registry.models import OwnTool

Handler = Callable[[Turn], Awaitable[bytes]]
LISTED = 50
NOT_YOURS = "No call of yours has this call_id. Give the one that the earlier answer named."


def handler(turn: Turn, name: str) -> Handler | None:
    """Of a tool of ours that this toolset has."""
    own = name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""
    return _HANDLERS.get(own) if own in turn.exchange.toolset.own_tools else None


async def await_call(turn: Turn) -> bytes:
    found = await _own(turn)
    if found is None:
        return turn.sentence(NOT_YOURS)
    turn.brings = True
    await hearing.go_on(turn, FIRST)
    resuming.follow(turn, found.call_id)
    turn.reply.linger(waiting.gone(turn.runtime, found.call_id, None))
    answer = found.seen.answer or await waiting.wait(
        turn.runtime,
        found.call_id,
        seconds=settings.HOLD_S,
        on_step=turn.on_step,
        for_people=True,
        lines=turn.lines,
    )
    if answer is None:
        return await pending.not_yet(turn, found.call_id)
    await waiting.heard(turn.runtime, found.call_id)
    return turn.answered(answer)


async def get_call(turn: Turn) -> bytes:
    found = await _own(turn)
    if found is None:
        return turn.sentence(NOT_YOURS)
    if found.seen.answer is not None:
        await waiting.heard(turn.runtime, found.call_id)
    return _structured(turn, await asyncio.to_thread(_read, found.call_id))


def _read(call_id: UUID) -> dict[str, Any]:
    try:
        return described(Call.objects.select_related("amendment").get(pk=call_id))
    finally:
        connection.close()


async def cancel_call(turn: Turn) -> bytes:
    found = await _own(turn)
    if found is None:
        return turn.sentence(NOT_YOURS)
    if not await waiting.cancel(turn.runtime, found.call_id, by=turn.exchange.actor):
        return await _ended(turn, found.call_id)
    was = found.seen.state
    if was == State.RUNNING:
        said = _("Its server is asked to stop. It may have been executed: wait for its outcome.")
    else:
        said = _("It is withdrawn. Nothing was sent.")
    return _structured(turn, {"id": found.call_id, "was": was, "said": said})


async def _ended(turn: Turn, call_id: UUID) -> bytes:
    found = await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)
    assert found is not None
    said = _("It cannot be cancelled: %(state)s already.")
    text = said % {"state": State(found.seen.state).label}
    executed = found.seen.answer.executed if found.seen.answer else "unknown"
    return turn.sentence(text, call=str(call_id), state=found.seen.state, executed=executed)


async def my_waiting_calls(turn: Turn) -> bytes:
    return _structured(turn, await asyncio.to_thread(_waiting, turn.agent_id))


def _waiting(agent_id: int) -> dict[str, Any]:
    try:
        found = Call.objects.live().filter(agent_id=agent_id).newest_first()[: LISTED + 1]
        calls = [in_short(call) for call in found]
        return {"calls": calls[:LISTED], "more": len(calls) > LISTED}
    finally:
        connection.close()


async def justify(turn: Turn) -> bytes:
    found = await _own(turn)
    if found is None:
        return turn.sentence(NOT_YOURS)
    text = (turn.message.params.get("arguments") or {}).get("text")
    if not isinstance(text, str):
        return turn.sentence(_("text must be a string: what you say to those who decide."))
    try:
        await asyncio.to_thread(_say, turn, found.call_id, text)
    except talk.NotSaid as error:
        return turn.sentence(str(error), call=str(found.call_id), state=found.seen.state)
    said = _("Those who decide see it, as your claim. To get the outcome, wait for the call.")
    return _structured(turn, {"id": found.call_id, "said": said})


def _say(turn: Turn, call_id: UUID, text: str) -> None:
    try:
        talk.answer(call_id, agent=turn.exchange.actor, text=text)
    finally:
        connection.close()


async def _own(turn: Turn) -> Found | None:
    call_id = _named(turn.message.params.get("arguments"))
    if call_id is None:
        return None
    return await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)


def _named(arguments: Any) -> UUID | None:
    try:
        return UUID(arguments["call_id"])
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def _structured(turn: Turn, members: dict[str, Any]) -> bytes:
    return turn.result(replies.structured(members, modern=turn.client.modern))


_HANDLERS: dict[str, Handler] = {
    OwnTool.AWAIT: await_call,
    OwnTool.GET: get_call,
    OwnTool.CANCEL: cancel_call,
    OwnTool.WAITING: my_waiting_calls,
    OwnTool.JUSTIFY: justify,
    OwnTool.EXPLAIN: explain,
}
