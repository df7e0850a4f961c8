"""resources/*: what servers offer, and what large results of the agent's calls were left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from gateway import large, listing, lookups, reading, replies
from gateway.exchange import Exchange, Turn
from gateway.refusals import invalid_params
from registry.methods import READ

# Nothing of ours ever changes, but it is gone one day.
TTL_MS = 60_000
_PRIVATE = {"ttlMs": TTL_MS, "cacheScope": "private"}
OURS = "countersign:"
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
    if uri.startswith(OURS):
        return await _read_ours(turn, uri)
    server = server_of(turn.exchange, uri)
    tool = turn.exchange.toolset.asking(server, READ) if server else None
    return await reading.ask(turn, tool, {"uri": uri})


async def resources(turn: Turn) -> bytes:
    return listing.answered(turn, "resources", _resources)


async def templates(turn: Turn) -> bytes:
    return listing.answered(turn, "resourceTemplates", _templates)


def server_of(exchange: Exchange, uri: str) -> str:
    """Whom to ask for it: the first that lists it, or one of whose templates it fits, in the order
    of their names; else, where there is but one, that one. Empty: nobody.

    What a server lists and nobody has published is not read there.
    """
    readers = {slug: one for slug, one in exchange.offered.items() if one.reads}
    open_ones = [slug for slug, one in readers.items() if uri not in one.withheld]
    listing = (slug for slug in open_ones if readers[slug].lists(uri))
    fitting = (slug for slug in open_ones if readers[slug].matches(uri))
    only = open_ones if len(readers) == 1 else []
    return next((slug for found in (listing, fitting, only) for slug in found), "")


def _resources(exchange: Exchange) -> Iterator[tuple[str, bytes]]:
    """Of two servers that list the same URI, the first one is asked for it."""
    seen = set()
    for offered in exchange.offered.values():
        for uri, content in offered.resources.items():
            if uri not in seen:
                seen.add(uri)
                yield uri, orjson.dumps(content)


def _templates(exchange: Exchange) -> Iterator[tuple[str, bytes]]:
    yield _TEMPLATE["uriTemplate"], orjson.dumps(_TEMPLATE)
    seen = set()
    for offered in exchange.offered.values():
        for text, (_template, content) in offered.templates.items():
            if text not in seen:
                seen.add(text)
                yield text, orjson.dumps(content)


async def _read_ours(turn: Turn, uri: str) -> bytes:
    found = await _found(turn, uri)
    if found is None:
        raise reading.no_resource(turn, {})
    modern = turn.client.modern
    members = {"contents": [found], **(_PRIVATE if modern else {})}
    return turn.result(replies.own(members, modern=modern))


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
