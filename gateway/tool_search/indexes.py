"""The newest index of each toolset whose agents search, made beside the event loop."""

from __future__ import annotations

import asyncio

from gateway.protocol.context import RequestContext
from gateway.tool_search.index import ToolIndex

# By toolset: it and its tools stay the same objects as long as nothing in them changes.
_indexes: dict[str, ToolIndex] = {}
_made_by_one = asyncio.Lock()


async def index_of(context: RequestContext) -> ToolIndex:
    found = _indexes.get(context.toolset.slug)
    if found is not None and found.tools is context.tools:
        return found
    async with _made_by_one:
        found = _indexes.get(context.toolset.slug)
        if found is None or found.tools is not context.tools:
            found = await asyncio.to_thread(ToolIndex, context.toolset, context.tools, found)
            _indexes[context.toolset.slug] = found
    return found
