"""How far a call is: at most four pictures a second into the row, and to whoever watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from core.journal import GroupCommit, Statement
from core.live import Notifier

PER_SECOND = 4
MESSAGE_MAX = 1000


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """What a server said last of how far it is; `progress` only grows."""

    progress: float
    total: float | None
    message: str


OnStep = Callable[[ProgressStep], None]

PROGRESS = Statement(
    "progress",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json)
    AS r(id uuid, fence int, progress float, total float, message text)
), told AS (
    UPDATE calls_call c
    SET progress = a.progress, progress_total = a.total, progress_message = a.message
    FROM asked a
    WHERE c.id = a.id AND c.fence = a.fence AND c.state = 'running'
    RETURNING c.id, c.mode
)
SELECT id, CASE WHEN mode = 'background' THEN pg_notify('countersign_call', id::text)::text END
FROM told
""",
    order=0,
)


# Of a server that says in words what it does, and not how far it is.
SAID = Statement(
    "said",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(id uuid, fence int, message text)
), told AS (
    UPDATE calls_call c SET progress_message = a.message
    FROM asked a
    WHERE c.id = a.id AND c.fence = a.fence AND c.state = 'running'
    RETURNING c.id, c.mode
)
SELECT id, CASE WHEN mode = 'background' THEN pg_notify('countersign_call', id::text)::text END
FROM told
""",
    order=0,
)


class ProgressThrottle:
    """One running call's progress: monotone, and written at most PER_SECOND times a second."""

    def __init__(self, call_id: UUID, fence: int, journal: GroupCommit, notifier: Notifier) -> None:
        self._call_id = call_id
        self._fence = fence
        self._journal = journal
        self._notifier = notifier
        self._last: ProgressStep | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._next_at = 0.0
        self._said = ""
        self._writing: asyncio.Task[None] | None = None

    def step(self, progress: float, total: float | None, message: str) -> ProgressStep | None:
        """The step to pass on, or None for one that does not go forward."""
        if self._last is not None and progress <= self._last.progress:
            return None
        self._last = ProgressStep(progress, total, storable(message))
        if self._timer is None:
            loop = asyncio.get_running_loop()
            # The first at once, and what comes too soon after it together.
            self._timer = loop.call_at(max(self._next_at, loop.time()), self._due)
        return self._last

    def say(self, message: str) -> None:
        """In words; the caller sees to it that they do not come too often."""
        if message == self._said:
            return
        self._said = message
        line = {"id": self._call_id, "fence": self._fence, "message": storable(message)}
        self._journal.write_later((SAID, line))
        self._notifier.notify(f"call.{self._call_id}")

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _due(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        self._next_at = loop.time() + 1 / PER_SECOND
        self._writing = loop.create_task(self._write())

    async def _write(self) -> None:
        assert self._last is not None
        line = {
            "id": self._call_id,
            "fence": self._fence,
            "progress": self._last.progress,
            "total": self._last.total,
            "message": self._last.message,
        }
        await self._journal.write((PROGRESS, line), within=None)
        self._notifier.notify(f"call.{self._call_id}", quiet_s=0)


def storable(message: str, most: int = MESSAGE_MAX) -> str:
    return message[:most].replace("\0", "�").encode(errors="replace").decode()
