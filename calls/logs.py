"""What a server logs while it runs a call: kept for its page, a few times a second, and capped."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import orjson
from django.utils.translation import gettext as _

from calls.progress import PER_SECOND, storable
from core.journal import Journal, Statement
from core.live import Bell

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
), kept AS (
    INSERT INTO calls_logline (call_id, fence, number, level, logger, text)
    SELECT a.id, a.fence, l.number, l.level, l.logger, l.text
    FROM asked a JOIN calls_call c ON c.id = a.id AND c.fence = a.fence,
        json_to_recordset(a.lines) AS l(number int, level text, logger text, text text)
    ON CONFLICT DO NOTHING
    RETURNING call_id
)
SELECT DISTINCT call_id FROM kept
""",
    order=0,
)


class LogBook:
    """One attempt's lines. `hear` takes the params of `notifications/message`."""

    def __init__(self, call_id: UUID, fence: int, journal: Journal, bell: Bell) -> None:
        self._call_id, self._fence = call_id, fence
        self._journal, self._bell = journal, bell
        self._lines: list[dict[str, Any]] = []
        self._count = self._characters = self._left_out = 0
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, params: dict[str, Any]) -> None:
        text = storable(_text(params.get("data")), LINE_MAX)
        if self._count >= LINES_MAX or self._characters + len(text) > CHARACTERS_MAX:
            self._left_out += 1
            return
        self._characters += len(text)
        self._add(_named(params, "level", LEVEL_MAX), _named(params, "logger", LOGGER_MAX), text)

    def close(self) -> None:
        if self._left_out:
            said = _("%(count)d more lines were not kept.") % {"count": self._left_out}
            self._add("", "", said)
        if self._timer is not None:
            self._timer.cancel()
            self._write()

    def _add(self, level: str, logger: str, text: str) -> None:
        line = {"number": self._count, "level": level, "logger": logger, "text": text}
        self._lines.append(line)
        self._count += 1
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(1 / PER_SECOND, self._write)

    def _write(self) -> None:
        self._timer = None
        lines, self._lines = self._lines, []
        sheet = {"id": self._call_id, "fence": self._fence, "lines": lines}
        self._journal.write_later((KEEP, sheet))
        self._bell.ring(f"call.{self._call_id}")


def _text(data: Any) -> str:
    if isinstance(data, str):
        return data
    try:
        return orjson.dumps(data).decode()
    except orjson.JSONEncodeError:
        # Numbers beyond 64 bits, lone surrogates.
        return repr(data)


def _named(params: dict[str, Any], name: str, most: int) -> str:
    said = params.get(name)
    return storable(said, most) if isinstance(said, str) else ""
