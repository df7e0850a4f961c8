"""tools/call: from the request to submit(), and from its answer to the agent."""

from __future__ import annotations

from typing import Any

import orjson
from django.utils.translation import gettext as _

from calls.heard import Ear
from calls.models import Call
from core import abilities
from gateway import (
    asides,
    handles,
    hearing,
    legacy_tasks,
    messages,
    own_tools,
    pending,
    questions,
    repeated,
    resuming,
    sessions,
    tracing,
    waiting,
)
from gateway.asked import Ask, Submitted
from gateway.exchange import Turn
from gateway.refusals import invalid_params
from gateway.stream import OnGone
from gateway.submit import submit
from registry.published import CALL, PublishedTool


async def call(turn: Turn) -> bytes:
    name = turn.message.params.get("name")
    if not isinstance(name, str):
        raise invalid_params("params.name must be a string.")
    if turn.as_task:
        legacy_tasks.check(turn)
    if own := own_tools.handler(turn, name):
        if turn.as_task:
            raise legacy_tasks.never(name)
        return await own(turn)

    tool = _tool(turn, name)
    if tool is None:
        await turn.look_again()
        tool = _tool(turn, name)
    if turn.client.modern and tool is not None:
        repeated.check(turn.exchange, tool, _parsed(turn))
    arguments = messages.raw_arguments(turn.message)
    if turn.client.modern and "requestState" in turn.message.params:
        return await pending.retried(turn, digest=_digest(turn, name, arguments))

    submitted = await _submit(turn, tool, name, arguments)
    if submitted.refusal == "unknown_tool":
        raise invalid_params(f"Unknown tool: {name}", _told(submitted))
    if submitted.refusal == "key":
        raise invalid_params(submitted.reason, _told(submitted))
    if turn.as_task:
        return await legacy_tasks.created(turn, submitted)
    if submitted.refusal == "invalid":
        return _violations(turn, submitted)
    if submitted.answer is not None:
        return turn.answered(submitted.answer)
    return await unanswered(turn, submitted, digest=_digest(turn, name, arguments))


async def unanswered(turn: Turn, submitted: Submitted, *, digest: str) -> bytes:
    """What its agent gets until there is an answer."""
    resuming.follow(turn, submitted.call_id)
    return await pending.answer(
        turn,
        call_id=submitted.call_id,
        state=submitted.state,
        digest=digest,
        turned=submitted.turned,
    )


async def _submit(turn: Turn, tool: PublishedTool | None, name: str, arguments: bytes) -> Submitted:
    key, again = asides_of(turn)
    ask = Ask(
        bearer=turn.exchange.bearer,
        toolset=turn.exchange.toolset,
        tool=tool,
        tool_name=name,
        arguments=arguments,
        parsed=_parsed(turn),
        origin=Call.Origin.MCP,
        revision=turn.client.revision,
        client=turn.client.name,
        request_key=key_of(turn),
        key=key,
        again=again,
        background=turn.as_task,
        as_task=turn.as_task,
        **await able(turn, tool),
    )
    resuming.follow(turn, ask.call_id)
    turn.reply.linger(None if key else gone(turn, ask))
    return await submit(turn.runtime, ask, ear=ear_of(turn, ask))


async def able(turn: Turn, tool: PublishedTool | None) -> dict[str, Any]:
    """What its client can be asked, answered before, and wants to hear, as members of an Ask."""
    client = turn.client
    words = abilities.relayed(client.abilities, tool.relays) if tool else ()
    return {
        "abilities": words,
        "may_turn": bool(words) or turn.takes_tasks,
        "takes_tasks": turn.takes_tasks or turn.as_task,
        "responses": _responses(turn),
        "log_level": await hearing.wanted(turn),
        "session": sessions.session_key(client.session) if client.hears_of_pages else "",
        "trace": tracing.of(turn.message.meta),
    }


def ear_of(turn: Turn, ask: Ask) -> Ear:
    return Ear(turn.on_step, hearing.relay(turn, ask.log_level))


def _responses(turn: Turn) -> bytes:
    """What comes as answers with no question of ours: the server may know what to make of it."""
    if not turn.client.modern:
        return b""
    given = questions.responses_of(turn.message)
    return orjson.dumps(given) if given else b""


def _tool(turn: Turn, name: str) -> PublishedTool | None:
    """What is asked by a method of its own is no tool here."""
    found = turn.exchange.tools.get(name)
    return found if found is not None and found.method == CALL else None


def gone(turn: Turn, ask: Ask) -> OnGone:
    """For when its client goes away: only the modern revision says that this cancels it."""
    by = turn.exchange.actor if turn.client.modern else None
    return waiting.gone(turn.runtime, ask.call_id, by)


def asides_of(turn: Turn) -> tuple[str, bool]:
    """Its own key for this one call; and whether it is meant although it is the same again."""
    headers, meta = turn.exchange.headers, turn.message.meta
    try:
        return asides.key_of(headers.text(asides.KEY_HEADER), meta), asides.again_of(meta)
    except asides.BadAside as error:
        raise invalid_params(str(error)) from error


def _parsed(turn: Turn) -> Any:
    parsed = turn.message.params.get("arguments")
    return {} if parsed is None else parsed


def key_of(turn: Turn) -> str:
    session = turn.client.session
    return sessions.request_key(session, turn.message.id) if session else ""


def _digest(turn: Turn, name: str, arguments: bytes) -> str:
    return handles.asked(turn.exchange.place, name, arguments)


def _violations(turn: Turn, submitted: Submitted) -> bytes:
    """All of them, so that the agent can put everything right at once."""
    lines = [_("Nothing was sent: the arguments do not fit the tool's schema.")]
    lines += [f"- {violation}" for violation in submitted.violations]
    meta = {"call": str(submitted.call_id), "state": submitted.state, "executed": "no"}
    found = [{"path": v.path, "expected": v.expected} for v in submitted.violations]
    return turn.sentence("\n".join(lines), **meta, refusal=_told(submitted) | {"violations": found})


def _told(submitted: Submitted) -> dict[str, Any]:
    answer = submitted.answer
    assert answer is not None
    assert answer.refusal is not None
    return answer.refusal.told(submitted.reason)
