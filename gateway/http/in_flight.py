"""How many are inside, for whoever wants to close."""

from __future__ import annotations

import asyncio


class InFlightCounter:
    def __init__(self) -> None:
        self._inside = 0
        self._emptied: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        self._inside += 1

    def __exit__(self, *error: object) -> None:
        self._inside -= 1
        if self._emptied is not None and not self._inside and not self._emptied.done():
            self._emptied.set_result(None)

    async def empty(self, *, seconds: float) -> None:
        """Until the last one left, or so long."""
        if self._inside:
            self._emptied = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._emptied], timeout=seconds)
