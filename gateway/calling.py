"""tools/call: from the request to submit(), and from its answer to the agent."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from calls.models import Call
from gateway import handles, messages, pending, sessions, waiting
from gateway.awaiting import AWAIT_CALL, await_call
from gateway.exchange import Turn
from gateway.refusals import invalid_params
from gateway.submit import Ask, Submitted, submit


async def call(turn: Turn) -> bytes:
    name = turn.message.params.get("name")
    if not isinstance(name, str):
        raise invalid_params("params.name must be a string.")
    if name == AWAIT_CALL["name"]:
        return await await_call(turn)

    arguments = messages.raw_arguments(turn.message)
    if turn.client.modern and "requestState" in turn.message.params:
        return await pending.retried(turn, digest=_digest(turn, name, arguments))

    submitted = await _submit(turn, name, arguments)
    if submitted.refusal == "unknown_tool":
        raise invalid_params(f"Unknown tool: {name}")
    if submitted.refusal == "invalid":
        return _violations(turn, submitted)
    if submitted.answer is not None:
        return turn.answered(submitted.answer)
    digest = _digest(turn, name, arguments)
    return await pending.answer(
        turn, call_id=submitted.call_id, state=submitted.state, digest=digest
    )


async def _submit(turn: Turn, name: str, arguments: bytes) -> Submitted:
    exchange, client = turn.exchange, turn.client
    ask = Ask(
        bearer=exchange.bearer,
        toolset=exchange.toolset,
        tool=exchange.tools.get(name),
        tool_name=name,
        arguments=arguments,
        parsed=_parsed(turn),
        origin=Call.Origin.MCP,
        revision=client.revision,
        client=client.name,
        request_key=_key(turn),
    )

    async def stop() -> None:
        await waiting.cancel(turn.runtime, ask.call_id, by=exchange.actor)

    # Only the modern revision says that going away means to cancel.
    turn.reply.linger(stop if client.modern else None)
    return await submit(turn.runtime, ask, on_step=turn.on_step)


def _parsed(turn: Turn) -> Any:
    parsed = turn.message.params.get("arguments")
    return {} if parsed is None else parsed


def _key(turn: Turn) -> str:
    session = turn.client.session
    return sessions.request_key(session, turn.message.id) if session else ""


def _digest(turn: Turn, name: str, arguments: bytes) -> str:
    return handles.asked(turn.exchange.place, name, arguments)


def _violations(turn: Turn, submitted: Submitted) -> bytes:
    """All of them, so that the agent can put everything right at once."""
    lines = [_("Nothing was sent: the arguments do not fit the tool's schema.")]
    lines += [f"- {violation}" for violation in submitted.violations]
    meta = {"call": str(submitted.call_id), "state": submitted.state, "executed": "no"}
    return turn.sentence("\n".join(lines), **meta)
