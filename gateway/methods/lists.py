"""server/discover and the lists, in pages of bytes that are made once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from core import seal
from core.header_params import ANNOTATION
from gateway.methods.own_definitions import DEFINITIONS
from gateway.protocol import replies
from gateway.protocol.context import RequestContext, RpcRequest
from gateway.protocol.errors import invalid_params
from gateway.protocol.revisions import LAST_LEGACY, MODERN, SERVER_INFO, SUPPORTED, TASKS
from gateway.tool_search.definitions import definitions as search_definitions
from registry.publishing.published_tools import CALL, PublishedTool
from registry.schemas import compiled

PAGE = 500
# How long a client may go by what it was told, if it does not listen for changes.
TTL_MS = 5_000
SEVERAL = "Tools of several servers behind one gateway."
PEOPLE_DECIDE = (
    "Some calls wait until a person has approved "
    "them: when a result says so, wait for the outcome instead of calling again."
)
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
_CACHE = {"ttlMs": TTL_MS, "cacheScope": "private"}
# As only 2025-11-25 has it. Where its server says nothing of it: we run every call as one if we
# are asked to, and people may have to decide on any.
_AS_TASK = {"taskSupport": "optional"}
_TASKS: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


async def discover(rpc: RpcRequest) -> bytes:
    members = {
        "supportedVersions": list(SUPPORTED),
        "capabilities": {**CAPABILITIES, "extensions": {TASKS: {}}},
        "instructions": _instructions(rpc.context),
        **_CACHE,
    }
    return rpc.result(replies.own(members, modern=True))


def _instructions(context: RequestContext) -> str:
    """At a server's own address its own come first, if somebody has published them."""
    offered = context.offered.get(context.server)
    own = offered.instructions if offered else ""
    return f"{own}\n\n{PEOPLE_DECIDE}" if own else f"{SEVERAL} {PEOPLE_DECIDE}"


def initialized(context: RequestContext, revision: str) -> bytes:
    members = {
        "protocolVersion": revision,
        "capabilities": CAPABILITIES | ({"tasks": _TASKS} if revision == LAST_LEGACY else {}),
        "serverInfo": SERVER_INFO,
        "instructions": _instructions(context),
    }
    return replies.own(members, modern=False)


Items = Callable[[RequestContext], Iterable[tuple[str, bytes]]]


class List:
    """One address's tools, prompts or the like as one era gets them; `member` holds them.

    `as_listed`: in the order of `items`, which is their server's; else in that of their names."""

    def __init__(
        self, member: str, items: Mapping[str, bytes], *, modern: bool, as_listed: bool
    ) -> None:
        self._member = member
        self._names = list(items) if as_listed else sorted(items)
        self._items = [items[name] for name in self._names]
        self._places = {name: n for n, name in enumerate(self._names)} if as_listed else None
        self._modern = modern
        self._pages: dict[int, bytes] = {}

    def page(self, after: str) -> bytes:
        # By name, not by number: tools may come and go while a client turns pages.
        start = self._start(after)
        if start not in self._pages:
            self._pages[start] = self._page(start)
        return self._pages[start]

    def _start(self, after: str) -> int:
        if self._places is None:
            return bisect_right(self._names, after)
        if after and after not in self._places:
            raise invalid_params("What this cursor stood at is gone: list again without it.")
        return self._places[after] + 1 if after else 0

    def _page(self, start: int) -> bytes:
        end = start + PAGE
        shown = [orjson.Fragment(item) for item in self._items[start:end]]
        members: dict[str, Any] = {self._member: shown}
        if end < len(self._items):
            members["nextCursor"] = seal.to_text(self._names[end - 1].encode())
        if self._modern:
            members |= _CACHE
        return replies.own(members, modern=self._modern)


class ListPages:
    """The lists of one generation of the configuration; of an older one, none."""

    def __init__(self) -> None:
        self._generation = -1
        self._lists: dict[tuple[str, str, str, bool], List] = {}

    def of(self, context: RequestContext, member: str, items: Items, revision: str) -> List:
        if context.snapshot.generation != self._generation:
            self._generation, self._lists = context.snapshot.generation, {}
        key = (context.place, member, revision, context.bearer.reads_only)
        if key not in self._lists:
            modern, as_listed = revision == MODERN, bool(context.server)
            self._lists[key] = List(
                member, dict(items(context)), modern=modern, as_listed=as_listed
            )
        return self._lists[key]


_lists = ListPages()


async def tools(rpc: RpcRequest) -> bytes:
    revision = rpc.client.revision
    return answered(rpc, "tools", lambda context: _items(context, revision).items())


def answered(rpc: RpcRequest, member: str, items: Items) -> bytes:
    """One page of a list; `items` gives all of it, each by its name."""
    after = _after(rpc.message.params.get("cursor", ""))
    found = _lists.of(rpc.context, member, items, rpc.client.revision)
    return rpc.result(found.page(after))


def _after(cursor: object) -> str:
    try:
        if isinstance(cursor, str):
            return seal.from_text(cursor).decode()
    except ValueError:
        pass
    raise invalid_params("This cursor is not one of ours: list again without it.")


def _items(context: RequestContext, revision: str) -> dict[str, bytes]:
    items = _search_tools(context) if context.searches else _published(context, revision)
    if not context.server:
        for own in sorted(context.toolset.own_tools & DEFINITIONS.keys()):
            name = context.toolset.own_name(own)
            items[name] = orjson.dumps(DEFINITIONS[own] | {"name": name})
    return items


def _search_tools(context: RequestContext) -> dict[str, bytes]:
    made = search_definitions(context.toolset)
    return {name: orjson.dumps(definition) for name, definition in made.items()}


def _published(context: RequestContext, revision: str) -> dict[str, bytes]:
    # As they were discovered: new ones come last.
    tools = sorted(context.tools.items(), key=lambda one: one[1].tool_id)
    return {
        name: _described(context.toolset.definition_for(name, tool), tool, revision)
        for name, tool in tools
        if tool.method == CALL and (tool.only_reads or not context.bearer.reads_only)
    }


def _described(told: dict[str, Any], tool: PublishedTool, revision: str) -> bytes:
    content = {key: value for key, value in told.items() if key != "execution"}
    if revision == LAST_LEGACY:
        said = told.get("execution")
        content["execution"] = _AS_TASK | said if isinstance(said, dict) else _AS_TASK
    if revision == MODERN and not tool.shape.param_headers:
        # What stands there all the same is wrong, and clients would have to drop the tool for it.
        content["inputSchema"] = compiled.without_keyword(content["inputSchema"], ANNOTATION)
    if revision != MODERN and not _is_object(content.get("outputSchema")):
        # Earlier revisions know no other outputs; one such schema would fail the whole list.
        content.pop("outputSchema", None)
    content["inputSchema"] = _with_properties(content["inputSchema"])
    return orjson.dumps(content)


def _with_properties(schema: Any) -> Any:
    """Hosts hand schemas on to models' APIs, of which OpenAI's rejects a request in which one of
    a tool has no `properties`."""
    return (
        schema | {"properties": {}} if _is_object(schema) and "properties" not in schema else schema
    )


def _is_object(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object"
