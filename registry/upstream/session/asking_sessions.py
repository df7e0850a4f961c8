"""A session or process for each agent, for servers of earlier revisions that send input requests.

There a client says only once what it can be asked, and a question may come beside all calls, where
nothing says whose it is. With one agent a session, it is never put to another agent.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

# A session that no call used for so long is closed when another is made.
UNUSED_S = 600.0


class AskingSession(Protocol):
    # Calls that go on over it.
    users: int

    async def close(self) -> None: ...


S = TypeVar("S", bound=AskingSession)
# What can be asked, in words of core.abilities, and who is asked.
Key = tuple[tuple[str, ...], str]


class AskingSessions(Generic[S]):
    def __init__(self) -> None:
        # With when each was wanted last, on the loop's clock.
        self._sessions: dict[Key, tuple[S, float]] = {}

    async def find(self, key: Key, make: Callable[[], S]) -> S:
        now = asyncio.get_running_loop().time()
        known = self._sessions.get(key)
        session = known[0] if known else make()
        self._sessions[key] = session, now
        if known is None:
            await self._close_unused(now - UNUSED_S)
        return session

    async def close(self) -> None:
        while self._sessions:
            session, _wanted_at = self._sessions.popitem()[1]
            await session.close()

    async def _close_unused(self, since: float) -> None:
        for key, (session, wanted_at) in list(self._sessions.items()):
            if wanted_at < since and not session.users and key in self._sessions:
                del self._sessions[key]
                await session.close()
