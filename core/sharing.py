"""Many who want to know the same at the same moment ask once.

Who comes while an answer is on its way waits for the next one: what that says was read after all
who get it had asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Sharing:
    """One for each event loop."""

    def __init__(self) -> None:
        self._next: dict[Hashable, asyncio.Task[Any]] = {}
        self._now: dict[Hashable, asyncio.Task[Any]] = {}

    async def ask(self, key: Hashable, question: Callable[[], Awaitable[T]]) -> T:
        task = self._next.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._answer(key, question))
            self._next[key] = task
        # Whoever leaves does not take the answer from the others.
        answer: T = await asyncio.shield(task)
        return answer

    async def _answer(self, key: Hashable, question: Callable[[], Awaitable[T]]) -> T:
        if key in self._now:
            await asyncio.wait([self._now[key]])
        self._now[key] = self._next.pop(key)
        try:
            return await question()
        finally:
            del self._now[key]


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Sharing] = WeakKeyDictionary()


def here() -> Sharing:
    return _of_loops.setdefault(asyncio.get_running_loop(), Sharing())
