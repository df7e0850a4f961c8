"""resources/*: what servers offer, and what large results of the agent's calls were left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from gateway.methods import item_calls
from gateway.methods import lists as listing
from gateway.methods.named_calls import find_named
from gateway.protocol import large_results, replies
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import invalid_params
from gateway.submit import lookups
from registry.methods import READ
from registry.publishing.published_items import PublishedItems
from registry.publishing.published_tools import PublishedTool

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


async def read(rpc: RpcRequest) -> bytes:
    uri = rpc.message.params.get("uri")
    if not isinstance(uri, str):
        raise invalid_params("params.uri must be a string.")
    if uri.startswith(OURS):
        return await _read_ours(rpc, uri)
    tool = await _reader(rpc, uri)
    if tool is None:
        await rpc.look_again()
        tool = await _reader(rpc, uri)
    return await item_calls.call_item(rpc, tool, {"uri": uri})


async def resources(rpc: RpcRequest) -> bytes:
    return listing.answered(rpc, "resources", _resources)


async def templates(rpc: RpcRequest) -> bytes:
    return listing.answered(rpc, "resourceTemplates", _templates)


def server_of(context: RequestContext, uri: str) -> str:
    """Whom to ask for it: the first that lists it, or one of whose templates it fits, in the order
    of their names; else, where there is but one that names any, that one. Empty: nobody.

    What a server lists and nobody has published is not read there.
    """
    return _naming(context, uri) or _only(context, uri)


def _open_to(context: RequestContext, uri: str) -> dict[str, PublishedItems]:
    offered = context.offered
    return {s: one for s, one in offered.items() if one.reads and uri not in one.withheld}


def _naming(context: RequestContext, uri: str) -> str:
    open_ones = _open_to(context, uri)
    listing = (slug for slug, one in open_ones.items() if one.lists(uri))
    fitting = (slug for slug, one in open_ones.items() if one.matches(uri))
    return next((slug for found in (listing, fitting) for slug in found), "")


def _only(context: RequestContext, uri: str) -> str:
    offered = context.offered
    readers = [slug for slug, one in offered.items() if one.reads and one.names_some]
    return readers[0] if len(readers) == 1 and readers[0] in _open_to(context, uri) else ""


async def _reader(rpc: RpcRequest, uri: str) -> PublishedTool | None:
    """The tool row through which the resource is read."""
    context = rpc.context
    server = _naming(context, uri) or await _linking(rpc, uri) or _only(context, uri)
    return context.toolset.method_tool(server, READ) if server else None


async def _linking(rpc: RpcRequest, uri: str) -> str:
    """The first whose results linked to it, as far as this agent got them. What others got, it
    must not learn of by reading it."""
    context = rpc.context
    asking = {slug: context.toolset.method_tool(slug, READ) for slug in _open_to(context, uri)}
    by_id = {tool.server_id: slug for slug, tool in asking.items() if tool is not None}
    if set(by_id.values()) <= {_only(context, uri)}:
        return ""
    known = await lookups.linking(rpc.runtime, uri, agent_id=rpc.agent_id)
    return min((by_id[server_id] for server_id in known if server_id in by_id), default="")


def _resources(context: RequestContext) -> Iterator[tuple[str, bytes]]:
    """Resources of all servers here; of two with one URI the first is listed."""
    seen = set()
    for offered in context.offered.values():
        for uri, content in offered.resources.items():
            if uri not in seen:
                seen.add(uri)
                yield uri, orjson.dumps(content)


def _templates(context: RequestContext) -> Iterator[tuple[str, bytes]]:
    yield _TEMPLATE["uriTemplate"], orjson.dumps(_TEMPLATE)
    seen = set()
    for offered in context.offered.values():
        for text, (_template, content) in offered.templates.items():
            if text not in seen:
                seen.add(text)
                yield text, orjson.dumps(content)


async def _read_ours(rpc: RpcRequest, uri: str) -> bytes:
    found = await _find_large_result(rpc, uri)
    if found is None:
        raise item_calls.no_resource(rpc, {})
    modern = rpc.client.modern
    members = {"contents": [found], **(_PRIVATE if modern else {})}
    return rpc.result(replies.own(members, modern=modern))


async def _find_large_result(rpc: RpcRequest, uri: str) -> dict[str, Any] | None:
    """The contents of a large result's item; None for another agent's, as for one that does not
    exist."""
    named = large_results.parse(uri)
    if named is None:
        return None
    call_id, number = named
    call = await find_named(rpc.context, call_id)
    if call is None or call.seen.answer is None or call.seen.answer.result is None:
        return None
    return large_results.contents(call.seen.answer.result, uri, number)
