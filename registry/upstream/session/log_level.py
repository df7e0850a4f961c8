"""The minimum log level of a session with a server of an earlier revision, which many calls
share.

Source: MCP 2025-11-25, server/utilities/logging.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from core.levels import LEVELS

SET_LEVEL = "logging/setLevel"
# For who hears it, and does not say from where on.
_USUAL = "info"

Tell = Callable[[str], Awaitable[object]]


def logs(opening: Mapping[str, Any]) -> bool:
    """Whether the server declares that its log level can be set."""
    declared = opening.get("capabilities")
    return isinstance(declared, dict) and isinstance(declared.get("logging"), dict)


class Loudness:
    """One session's log level: the most detailed that any running call wants."""

    def __init__(self) -> None:
        self._level = ""
        self._out: Counter[str] = Counter()
        self._telling = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def enough(self, level: str, tell: Tell) -> AsyncIterator[None]:
        """Keeps the session's log level at least this low while entered; "" keeps the server's
        default."""
        self._out[level] += 1
        try:
            await self._agree(tell)
            yield
        finally:
            self._out[level] -= 1

    async def _agree(self, tell: Tell) -> None:
        # One after the other: nothing is sent before the server knows.
        async with self._telling:
            wanted = [level for level, calls in self._out.items() if calls]
            if not self._level and not any(wanted):
                return
            lowest = min((level or _USUAL for level in wanted), key=LEVELS.index)
            if lowest != self._level:
                self._level = lowest
                await tell(lowest)
