"""resources/read, prompts/get, completion/complete and methods of extensions: calls like those of
tools, by the one door, that answer in another form."""

from __future__ import annotations

from typing import Any

import orjson
from django.utils.translation import gettext as _

from calls.models import Call
from gateway import calling, handles, pending, resuming
from gateway.asked import Ask, Submitted
from gateway.exchange import Turn
from gateway.refusals import Refusal
from gateway.revisions import INVALID_PARAMS, RESOURCE_NOT_FOUND
from gateway.submit import submit
from registry.methods import COMPLETE, GET, METHODS, READ
from registry.published import PublishedTool, Violation


async def ask(
    turn: Turn,
    tool: PublishedTool | None,
    params: dict[str, Any],
    *,
    wrong: tuple[Violation, ...] = (),
) -> bytes:
    """`params`: what its server gets. `tool`: by which it is asked, None for what there is not."""
    method, arguments = turn.message.method, orjson.dumps(params)
    digest = handles.asked(turn.exchange.place, method, arguments)
    if turn.client.modern and "requestState" in turn.message.params:
        return await pending.retried(turn, digest=digest)
    # By the protocol the others change nothing, and may be asked for again and again.
    key, again = ("", False) if method in METHODS else calling.asides_of(turn)
    ask = Ask(
        bearer=turn.exchange.bearer,
        toolset=turn.exchange.toolset,
        tool=tool,
        tool_name=method,
        arguments=arguments,
        parsed=orjson.loads(arguments),
        origin=Call.Origin.MCP,
        revision=turn.client.revision,
        client=turn.client.name,
        request_key=calling.key_of(turn),
        key=key,
        again=again,
        wrong=wrong,
        # Nobody decides on each letter that is typed.
        at_once=method == COMPLETE,
        # Whoever completes an argument as it is typed is asked nothing.
        **({} if method == COMPLETE else await calling.able(turn, tool)),
    )
    resuming.follow(turn, ask.call_id)
    turn.reply.linger(None if key else calling.gone(turn, ask))
    submitted = await submit(turn.runtime, ask, ear=calling.ear_of(turn, ask))
    if submitted.refusal in ("unknown_tool", "invalid"):
        raise _refused(turn, submitted)
    if submitted.answer is not None:
        return turn.answered(submitted.answer)
    return await calling.unanswered(turn, submitted, digest=digest)


def _refused(turn: Turn, submitted: Submitted) -> Refusal:
    told: dict[str, Any] = {"call": str(submitted.call_id)}
    if submitted.refusal == "invalid":
        told["violations"] = [
            {"path": v.path, "expected": v.expected} for v in submitted.violations
        ]
        return Refusal(400, submitted.reason, code=INVALID_PARAMS, data=told)
    if turn.message.method == READ:
        return no_resource(turn, told)
    said = {
        GET: _("There is no such prompt here: get one as it is listed."),
        COMPLETE: _("Nothing here completes arguments of that."),
    }
    return Refusal(400, said[turn.message.method], code=INVALID_PARAMS, data=told)


def no_resource(turn: Turn, told: dict[str, Any]) -> Refusal:
    code = INVALID_PARAMS if turn.client.modern else RESOURCE_NOT_FOUND
    said = _("There is no such resource for this agent, or no longer.")
    data = told | {"uri": str(turn.message.params.get("uri"))[:500]}
    return Refusal(400, said, code=code, data=data)
