"""resources/*: what servers offer, and what large results of the agent's calls were left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from gateway import large, listing, lookups, reading, replies
from gateway.exchange import Exchange, Turn
from gateway.refusals import invalid_params
from registry.methods import READ
from registry.offered import Offered
from registry.published import PublishedTool

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
    tool = await _reader(turn, uri)
    if tool is None:
        await turn.look_again()
        tool = await _reader(turn, uri)
    return await reading.ask(turn, tool, {"uri": uri})


async def resources(turn: Turn) -> bytes:
    return listing.answered(turn, "resources", _resources)


async def templates(turn: Turn) -> bytes:
    return listing.answered(turn, "resourceTemplates", _templates)


def server_of(exchange: Exchange, uri: str) -> str:
    """Whom to ask for it: the first that lists it, or one of whose templates it fits, in the order
    of their names; else, where there is but one that names any, that one. Empty: nobody.

    What a server lists and nobody has published is not read there.
    """
    return _naming(exchange, uri) or _only(exchange, uri)


def _open_to(exchange: Exchange, uri: str) -> dict[str, Offered]:
    offered = exchange.offered
    return {s: one for s, one in offered.items() if one.reads and uri not in one.withheld}


def _naming(exchange: Exchange, uri: str) -> str:
    open_ones = _open_to(exchange, uri)
    listing = (slug for slug, one in open_ones.items() if one.lists(uri))
    fitting = (slug for slug, one in open_ones.items() if one.matches(uri))
    return next((slug for found in (listing, fitting) for slug in found), "")


def _only(exchange: Exchange, uri: str) -> str:
    offered = exchange.offered
    readers = [slug for slug, one in offered.items() if one.reads and one.names_some]
    return readers[0] if len(readers) == 1 and readers[0] in _open_to(exchange, uri) else ""


async def _reader(turn: Turn, uri: str) -> PublishedTool | None:
    """By which it is read."""
    exchange = turn.exchange
    server = _naming(exchange, uri) or await _linking(turn, uri) or _only(exchange, uri)
    return exchange.toolset.asking(server, READ) if server else None


async def _linking(turn: Turn, uri: str) -> str:
    """The first whose results linked to it, as far as this agent got them. What others got, it
    must not learn of by reading it."""
    exchange = turn.exchange
    asking = {slug: exchange.toolset.asking(slug, READ) for slug in _open_to(exchange, uri)}
    by_id = {tool.server_id: slug for slug, tool in asking.items() if tool is not None}
    if set(by_id.values()) <= {_only(exchange, uri)}:
        return ""
    known = await lookups.linking(turn.runtime, uri, agent_id=turn.agent_id)
    return min((by_id[server_id] for server_id in known if server_id in by_id), default="")


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
