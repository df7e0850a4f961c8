"""How far a call is: at most four pictures a second into the row, and to whoever watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from calls.running.pace import Pace
from core.journal import GroupCommit, Statement
from core.live import Notifier

PER_SECOND = 4
MESSAGE_MAX = 1000
CUT = "…"


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """A server's last progress report; `progress` only grows. None: it sent a message alone."""

    progress: float | None
    total: float | None
    message: str


OnStep = Callable[[ProgressStep], None]

PROGRESS = Statement(
    "progress",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json)
    AS r(id uuid, fence int, progress float, total float, rate float, message text)
), told AS (
    UPDATE calls_call c
    SET progress = a.progress, progress_total = a.total, progress_rate = a.rate,
        progress_message = a.message
    FROM asked a
    WHERE c.id = a.id AND c.id BETWEEN %s AND %s AND c.fence = a.fence
      AND c.state = 'running'
    RETURNING c.id, c.mode
)
SELECT id, CASE WHEN mode = 'background' THEN pg_notify('countersign_call', id::text)::text END
FROM told
""",
    order=0,
    bounded=True,
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
    WHERE c.id = a.id AND c.id BETWEEN %s AND %s AND c.fence = a.fence
      AND c.state = 'running'
    RETURNING c.id, c.mode
)
SELECT id, CASE WHEN mode = 'background' THEN pg_notify('countersign_call', id::text)::text END
FROM told
""",
    order=0,
    bounded=True,
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
        self._pace = Pace()
        self._said = ""
        self._writing: asyncio.Task[None] | None = None

    def step(self, progress: float, total: float | None, message: str) -> ProgressStep | None:
        """The step to pass on; None for one that neither goes forward nor says anything new."""
        last, said = self._last, storable(message)
        if last is not None and last.progress is not None and progress <= last.progress:
            return self._stood(last, said)
        self._last = ProgressStep(progress, total, said)
        self._pace.add(asyncio.get_running_loop().time(), progress)
        self._write_soon()
        return self._last

    def _stood(self, last: ProgressStep, said: str) -> ProgressStep | None:
        if not said or said == last.message:
            return None
        self._last = replace(last, message=said)
        is_soon = self._timer is not None
        self._write_soon()
        return None if is_soon else ProgressStep(None, None, said)

    def _write_soon(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            # The first at once, and what comes too soon after it together.
            self._timer = loop.call_at(max(self._next_at, loop.time()), self._due)

    def say(self, message: str) -> ProgressStep | None:
        """In words; the caller sees to it that they do not come too often."""
        if message == self._said:
            return None
        self._said = message
        line: dict[str, Any] = {"id": self._call_id, "fence": self._fence}
        line["message"] = storable(message)
        self._journal.write_later((SAID, line))
        self._notifier.notify(f"call.{self._call_id}")
        return ProgressStep(None, None, line["message"])

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
            "rate": self._pace.rate,
            "message": self._last.message,
        }
        await self._journal.write((PROGRESS, line), within=None)
        self._notifier.notify(f"call.{self._call_id}", quiet_s=0)


def storable(message: str, most: int = MESSAGE_MAX) -> str:
    """The text as PostgreSQL accepts it; text longer than `most` ends with CUT."""
    cut = message if len(message) <= most else message[: most - 1] + CUT
    return cut.replace("\0", "�").encode(errors="replace").decode()


def is_cut(message: str) -> bool:
    return len(message) == MESSAGE_MAX and message.endswith(CUT)
