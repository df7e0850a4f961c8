"""The newest index of each toolset whose agents search, made beside the event loop."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from core.errors import CountersignError
from gateway.protocol.context import RequestContext
from gateway.tool_search import meanings
from gateway.tool_search.index import ToolIndex
from gateway.tool_search.meanings import Meaning
from registry.publishing.published_tools import Catalogue

# By toolset: it and its tools stay the same objects as long as nothing in them changes.
_indexes: dict[str, ToolIndex] = {}
_made_by_one: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
# One search after the other: whoever searches in a flood takes no thread that calls need.
_searching = ThreadPoolExecutor(1, "tool-search")
# Of the endpoint of embeddings: one thread learns, and one asks.
_learning = ThreadPoolExecutor(1, "tool-embeddings")
_asking = ThreadPoolExecutor(1, "question-embeddings")
# A search waits for its question's vector so long, those before it in the queue included.
ASK_WITHIN_S = 4.0


async def search(
    context: RequestContext, question: str, most: int, may_name: Callable[[str], bool]
) -> list[str]:
    """The names of the tools that fit best, the best first; of those that may be named."""
    index = await index_of(context)
    meaning = await _meaning_of(question, index) if meanings.is_on() else None
    return await asyncio.get_running_loop().run_in_executor(
        _searching, index.search, question, most, may_name, meaning
    )


async def _meaning_of(question: str, index: ToolIndex) -> Meaning | None:
    """None for as long as the tools have no vectors, and where the endpoint does not answer."""
    if not index.is_learned and not meanings.is_pausing():
        _learning.submit(_learn, index)
    if not index.meanings:
        return None
    asked = asyncio.get_running_loop().run_in_executor(_asking, meanings.of_question, question)
    done, _late = await asyncio.wait([asked], timeout=ASK_WITHIN_S)
    return asked.result() if done else None


def _learn(index: ToolIndex) -> None:
    if index.is_learned or meanings.is_pausing():
        return
    try:
        index.learn()
    except CountersignError as error:
        meanings.pause(error)


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
