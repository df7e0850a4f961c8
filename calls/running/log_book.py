"""Keeps lines that a server logs while it runs a call: in batches, and capped."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson
from psycopg import AsyncConnection

from calls.running.progress import PER_SECOND, storable
from core.english import gettext as _
from core.journal import GroupCommit, Statement
from core.live import Notifier

# Of one attempt.
LINES_MAX = 200
CHARACTERS_MAX = 64_000
LINE_MAX = 2_000
LEVEL_MAX, LOGGER_MAX = 20, 100

# Before the move that ends the call, where they share a transaction.
KEEP = Statement(
    "log",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(id uuid, fence int, lines json)
), known AS MATERIALIZED (
    SELECT a.*, c.mode FROM asked a
    JOIN calls_call c ON c.id = a.id AND c.id BETWEEN %s AND %s AND c.fence = a.fence
), kept AS (
    INSERT INTO calls_logline (call_id, fence, number, level, logger, text, structured)
    SELECT k.id, k.fence, l.number, l.level, l.logger, l.text, l.structured
    FROM known k, json_to_recordset(k.lines)
        AS l(number int, level text, logger text, text text, structured boolean)
    ON CONFLICT DO NOTHING
    RETURNING call_id
)
SELECT id, CASE WHEN mode = 'background' THEN pg_notify('countersign_call', id::text)::text END
FROM known WHERE id IN (SELECT call_id FROM kept)
""",
    order=0,
    bounded=True,
)

# An attempt, and a line's number in it: whoever reads on says where.
Place = tuple[int, int]
FIRST: Place = (0, 0)
_SINCE = """
    SELECT l.call_id, l.fence, l.number, l.level, l.logger, l.text, l.structured
    FROM json_to_recordset(%s::json) AS a(id uuid, fence int, number int)
    JOIN calls_logline l ON l.call_id = a.id AND (l.fence, l.number) >= (a.fence, a.number)
    ORDER BY l.call_id, l.fence, l.number
"""


async def since(
    connection: AsyncConnection[Any], places: Mapping[UUID, Place]
) -> dict[UUID, list[tuple[Place, dict[str, Any]]]]:
    """Kept lines from that place on, as params of `notifications/message`, by call."""
    asked = [{"id": one, "fence": at[0], "number": at[1]} for one, at in places.items()]
    cursor = await connection.execute(_SINCE, [orjson.dumps(asked).decode()])
    found: dict[UUID, list[tuple[Place, dict[str, Any]]]] = defaultdict(list)
    for call_id, fence, number, level, logger, text, structured in await cursor.fetchall():
        line = {"level": level or "info", **({"logger": logger} if logger else {})}
        data = orjson.loads(text) if structured else text
        found[call_id].append(((fence, number), {**line, "data": data}))
    return found


class LogBook:
    """One attempt's lines. `hear` takes the params of `notifications/message`."""

    def __init__(self, call_id: UUID, fence: int, journal: GroupCommit, notifier: Notifier) -> None:
        self._call_id, self._fence = call_id, fence
        self._journal, self._notifier = journal, notifier
        self._lines: list[dict[str, Any]] = []
        self._count = self._characters = self._left_out = 0
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, params: dict[str, Any]) -> None:
        said, structured = _text(params.get("data"))
        text = storable(said, LINE_MAX)
        if self._count >= LINES_MAX or self._characters + len(text) > CHARACTERS_MAX:
            self._left_out += 1
            return
        self._characters += len(text)
        level, logger = _named(params, "level", LEVEL_MAX), _named(params, "logger", LOGGER_MAX)
        self._add(level, logger, text, structured=structured and text == said)

    def close(self) -> None:
        if self._left_out:
            said = _("%(count)d more lines were not kept.") % {"count": self._left_out}
            self._add("", "", said)
        if self._timer is not None:
            self._timer.cancel()
            self._write()

    def _add(self, level: str, logger: str, text: str, *, structured: bool = False) -> None:
        line = {"number": self._count, "level": level, "logger": logger, "text": text}
        self._lines.append(line | {"structured": structured})
        self._count += 1
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(1 / PER_SECOND, self._write)

    def _write(self) -> None:
        self._timer = None
        lines, self._lines = self._lines, []
        sheet = {"id": self._call_id, "fence": self._fence, "lines": lines}
        self._journal.write_later((KEEP, sheet))
        self._notifier.notify(f"call.{self._call_id}")


def _text(data: Any) -> tuple[str, bool]:
    """And whether it is JSON."""
    if isinstance(data, str):
        return data, False
    try:
        return orjson.dumps(data).decode(), True
    except orjson.JSONEncodeError:
        # Numbers beyond 64 bits, lone surrogates.
        return repr(data), False


def _named(params: dict[str, Any], name: str, most: int) -> str:
    said = params.get(name)
    return storable(said, most) if isinstance(said, str) else ""
