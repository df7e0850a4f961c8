"""resources/*: what large results were left out of, for the agent whose calls they are."""

from __future__ import annotations

from typing import Any

from gateway import large, lookups, replies
from gateway.exchange import Turn
from gateway.refusals import Refusal, invalid_params
from gateway.revisions import INVALID_PARAMS, RESOURCE_NOT_FOUND

# Nothing of it ever changes, but it is gone one day.
TTL_MS = 60_000
_PRIVATE = {"ttlMs": TTL_MS, "cacheScope": "private"}
_TEMPLATE = {
    "uriTemplate": "countersign://calls/{call}/result/{item}",
    "name": "result",
    "title": "A large item of a call's result",
    "description": "Named by the link that stands in the result in its place.",
}


async def read(turn: Turn) -> bytes:
    uri = turn.message.params.get("uri")
    if not isinstance(uri, str):
        raise invalid_params("params.uri must be a string.")
    found = await _found(turn, uri)
    if found is None:
        raise _no_such(turn, uri)
    return _answer(turn, {"contents": [found]})


async def resources(turn: Turn) -> bytes:
    """None by name: they are found by the links in results."""
    return _answer(turn, {"resources": []})


async def templates(turn: Turn) -> bytes:
    return _answer(turn, {"resourceTemplates": [_TEMPLATE]})


async def _found(turn: Turn, uri: str) -> dict[str, Any] | None:
    """Somebody else's is told like one that does not exist."""
    named = large.parse(uri)
    if named is None:
        return None
    call_id, number = named
    call = await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)
    if call is None or call.seen.answer is None or call.seen.answer.result is None:
        return None
    return large.contents(call.seen.answer.result, uri, number)


def _no_such(turn: Turn, uri: str) -> Refusal:
    code = INVALID_PARAMS if turn.client.modern else RESOURCE_NOT_FOUND
    said = "There is no such resource for this agent, or no longer."
    return Refusal(400, said, code=code, data={"uri": uri[:500]})


def _answer(turn: Turn, members: dict[str, Any]) -> bytes:
    modern = turn.client.modern
    return turn.result(replies.own(members | (_PRIVATE if modern else {}), modern=modern))
