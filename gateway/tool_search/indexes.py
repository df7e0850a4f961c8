"""The newest index of each toolset whose agents search, made beside the event loop."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from gateway.protocol.context import RequestContext
from gateway.tool_search.index import ToolIndex
from registry.publishing.published_tools import Catalogue

# By toolset: it and its tools stay the same objects as long as nothing in them changes.
_indexes: dict[str, ToolIndex] = {}
_made_by_one: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
# One search after the other: whoever searches in a flood takes no thread that calls need.
_searching = ThreadPoolExecutor(1, "tool-search")


async def search(context: RequestContext, question: str, most: int) -> list[str]:
    """The names of the tools that fit best, the best first."""
    index = await index_of(context)
    return await asyncio.get_running_loop().run_in_executor(
        _searching, index.search, question, most
    )


async def index_of(context: RequestContext) -> ToolIndex:
    slug = context.toolset.slug
    found = _indexes.get(slug)
    if found is not None and found.tools is context.tools:
        return found
    async with _made_by_one[slug]:
        found = _indexes.get(slug)
        if found is None or found.tools is not context.tools:
            found = await asyncio.to_thread(ToolIndex, context.toolset, context.tools, found)
            _forget_unused(context.snapshot.catalogue)
            _indexes[slug] = found
    return found


def _forget_unused(catalogue: Catalogue) -> None:
    for slug in [*_indexes]:
        toolset = catalogue.toolset(slug)
        if toolset is None or not toolset.search_mode:
            _indexes.pop(slug, None)
            _made_by_one.pop(slug, None)
