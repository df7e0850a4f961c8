"""The gateway's own tools, by which agents ask about their calls.

Using one opens no call. What it changes is recorded as an entry of the call that it changes. A
foreign, an unknown and a malformed call id get the same answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from django.db import connection

from approvals import comments
from calls.content.answers import Answer
from calls.models import Call
from calls.record.states import State
from calls.running.log_book import FIRST
from core.english import gettext as _
from gateway.methods import log_messages, pending, sign_in, stream_resumption
from gateway.methods.explain import explain
from gateway.methods.named_calls import find_named
from gateway.process.call_watcher import ConsentRequested, InputRequested
from gateway.protocol import handles, replies
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import RpcError
from gateway.submit import lookups, wait
from gateway.submit.description import described, in_short
from gateway.submit.lookups import AgentCall
from gateway.submit.token_scope import reachable_tool_ids
from registry.models import OwnTool
from registry.publishing import agent_names

Handler = Callable[[RpcRequest], Awaitable[bytes]]
LISTED = 50
NOT_YOURS = "No call of yours has this call_id. Give the one that the earlier answer named."


def handler(rpc: RpcRequest, name: str) -> Handler | None:
    """Returns the function that handles the gateway's own tool `name`, if this toolset has it."""
    own = agent_names.own_tool(name)
    return _HANDLERS.get(own) if own in rpc.context.toolset.own_tools else None


async def await_call(rpc: RpcRequest) -> bytes:
    found = await _own(rpc)
    if found is None:
        return rpc.sentence(NOT_YOURS)
    rpc.brings = True
    await log_messages.go_on(rpc, FIRST)
    stream_resumption.follow(rpc, found.call_id)
    rpc.reply.watch_disconnect(wait.on_disconnect(rpc.runtime, found.call_id, None))
    seen = found.seen.answer or await _waited_for(rpc, found.call_id)
    if isinstance(seen, ConsentRequested):
        return sign_in.ask_while_waiting(rpc, found.call_id, seen)
    if not isinstance(seen, Answer):
        return await pending.not_yet(rpc, found.call_id)
    await wait.mark_delivered(rpc.runtime, found.call_id)
    return rpc.answered(seen)


async def _waited_for(
    rpc: RpcRequest, call_id: UUID
) -> Answer | InputRequested | ConsentRequested | None:
    with rpc.waiting(call_id):
        return await rpc.runtime.watch.wait(
            call_id,
            seconds=rpc.learned_hold_s,
            on_step=rpc.on_step,
            for_people=True,
            lines=rpc.lines,
            until_consent=sign_in.may_open(rpc),
        )


async def get_call(rpc: RpcRequest) -> bytes:
    found = await _own(rpc)
    if found is None:
        return rpc.sentence(NOT_YOURS)
    if found.seen.answer is not None:
        await wait.mark_delivered(rpc.runtime, found.call_id)
    return _structured(rpc, await asyncio.to_thread(_read, found.call_id))


def _read(call_id: UUID) -> dict[str, Any]:
    try:
        return described(Call.objects.select_related("amendment").get(pk=call_id))
    finally:
        connection.close()


async def cancel_call(rpc: RpcRequest) -> bytes:
    found = await _own(rpc)
    if found is None:
        return rpc.sentence(NOT_YOURS)
    if not await wait.cancel(rpc.runtime, found.call_id, by=rpc.context.actor):
        return await _ended(rpc, found.call_id)
    was = found.seen.state
    if was == State.RUNNING:
        said = _("Its server is asked to stop. It may have been executed: wait for its outcome.")
    else:
        said = _("It is withdrawn. Nothing was sent.")
    return _structured(rpc, {"id": found.call_id, "was": was, "said": said})


async def _ended(rpc: RpcRequest, call_id: UUID) -> bytes:
    found = await lookups.own(rpc.runtime, call_id, agent_id=rpc.agent_id)
    assert found is not None
    said = _("It cannot be cancelled: %(state)s already.")
    text = said % {"state": State(found.seen.state).label}
    executed = found.seen.answer.executed if found.seen.answer else "unknown"
    return rpc.sentence(text, call=str(call_id), state=found.seen.state, executed=executed)


async def my_waiting_calls(rpc: RpcRequest) -> bytes:
    return _structured(rpc, await asyncio.to_thread(_pending_calls, rpc.context))


def _pending_calls(context: RequestContext) -> dict[str, Any]:
    bearer = context.bearer
    try:
        found = Call.objects.live().filter(agent_id=bearer.agent_id).newest_first()
        if bearer.is_limited:
            found = found.filter(tool_id__in=reachable_tool_ids(bearer, context.toolset))
        calls = [in_short(call) for call in found[: LISTED + 1]]
        return {"calls": calls[:LISTED], "more": len(calls) > LISTED}
    finally:
        connection.close()


async def justify(rpc: RpcRequest) -> bytes:
    found = await _own(rpc)
    if found is None:
        return rpc.sentence(NOT_YOURS)
    text = (rpc.message.params.get("arguments") or {}).get("text")
    if not isinstance(text, str):
        return rpc.sentence(_("text must be a string: what you say to those who decide."))
    try:
        await asyncio.to_thread(_say, rpc, found.call_id, text)
    except comments.CommentRefused as error:
        return rpc.sentence(str(error), call=str(found.call_id), state=found.seen.state)
    said = _("Those who decide see it, as your claim. To get the outcome, wait for the call.")
    return _structured(rpc, {"id": found.call_id, "said": said})


def _say(rpc: RpcRequest, call_id: UUID, text: str) -> None:
    try:
        comments.answer(call_id, agent=rpc.context.actor, text=text)
    finally:
        connection.close()


async def _own(rpc: RpcRequest) -> AgentCall | None:
    call_id = _named(rpc.message.params.get("arguments"), rpc.agent_id)
    if call_id is None:
        return None
    return await find_named(rpc.context, call_id)


def _named(arguments: Any, agent_id: int) -> UUID | None:
    """Also by the id of the task that the call is."""
    given = arguments.get("call_id") if isinstance(arguments, dict) else None
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        return UUID(given)
    with contextlib.suppress(RpcError):
        return handles.call_of_task(given, agent_id)
    return None


def _structured(rpc: RpcRequest, members: dict[str, Any]) -> bytes:
    return rpc.result(replies.structured(members, modern=rpc.client.modern))


_HANDLERS: dict[str, Handler] = {
    OwnTool.AWAIT: await_call,
    OwnTool.GET: get_call,
    OwnTool.CANCEL: cancel_call,
    OwnTool.WAITING: my_waiting_calls,
    OwnTool.JUSTIFY: justify,
    OwnTool.EXPLAIN: explain,
}
