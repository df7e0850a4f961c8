"""How a tool was used lately: every number read by way of an index, however many calls there are.

Ids sort by time, so an index of (tool, id) counts a day's calls without looking at one of them.
How they ended and how long they took is read from the newest of each day.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection
from django.utils import timezone

from calls.models import Call
from calls.record.states import State
from core.ids import uuid7_floor
from registry.models import Server

DAYS = 30
# So many of each day's newest calls, and of all, say how they went.
OF_A_DAY, OF_ALL = 200, 2_000
# Beside each call of a list: so many of its tool's.
OF_A_TOOL = 200
CALLERS_MAX = 8
# Of each tool of a server, so many calls are looked through for errors.
LOOKED_AT, ERRORS_MAX = 50, 8

WRONG = (State.TOOL_ERROR, State.FAILED, State.TIMED_OUT, State.UNKNOWN)
ENDED = (State.SUCCEEDED, *WRONG)

BY_DAY = """
    SELECT c.n, s.looked_at, s.ended, s.wrong, s.p50, s.p95
    FROM unnest(%(lows)s::uuid[], %(highs)s::uuid[]) WITH ORDINALITY AS d(low, high, place)
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM calls_call
        WHERE tool_id = %(tool)s AND id >= d.low AND id < d.high
    ) AS c
    CROSS JOIN LATERAL (
        SELECT count(*) AS looked_at, count(*) FILTER (WHERE state = ANY(%(ended)s)) AS ended,
               count(*) FILTER (WHERE state = ANY(%(wrong)s)) AS wrong,
               percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS p50,
               percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95
        FROM (
            SELECT state, extract(epoch FROM finished_at - sent_at)::float AS seconds
            FROM calls_call WHERE tool_id = %(tool)s AND id >= d.low AND id < d.high
            ORDER BY id DESC LIMIT %(of_a_day)s
        ) AS newest
    ) AS s
    ORDER BY d.place
"""

OVERALL = """
    SELECT count(*) FILTER (WHERE state = ANY(%(ended)s)),
           count(*) FILTER (WHERE state = ANY(%(wrong)s)),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),
           percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds)
    FROM (
        SELECT state, extract(epoch FROM finished_at - sent_at)::float AS seconds
        FROM calls_call WHERE tool_id = %(tool)s AND id >= %(low)s
        ORDER BY id DESC LIMIT %(of_all)s
    ) AS newest
"""

CALLERS = """
    SELECT a.name, count(*)
    FROM (
        SELECT agent_id FROM calls_call WHERE tool_id = %(tool)s AND id >= %(low)s
        ORDER BY id DESC LIMIT %(of_all)s
    ) AS newest JOIN accounts_agent a ON a.id = newest.agent_id
    GROUP BY a.name ORDER BY count(*) DESC, a.name LIMIT %(callers)s
"""

TROUBLE = """
    SELECT newest.id
    FROM registry_tool t CROSS JOIN LATERAL (
        SELECT id, state FROM calls_call WHERE tool_id = t.id ORDER BY id DESC
        LIMIT (SELECT %(looked_at)s)
    ) AS newest
    WHERE t.server_id = %(server)s AND newest.state = ANY(%(wrong)s)
    ORDER BY newest.id DESC LIMIT %(most)s
"""


# One walk along each tool's index. A limit that the planner cannot read keeps it from reading all
# calls of a busy tool to sort them, which it does where the average tool has fewer than the limit.
P95_OF_TOOLS = """
    SELECT newest.tool_id,
           percentile_cont(0.95) WITHIN GROUP (
               ORDER BY extract(epoch FROM newest.finished_at - newest.sent_at)::float)
    FROM unnest(%(tools)s::bigint[]) AS t(id) CROSS JOIN LATERAL (
        SELECT tool_id, sent_at, finished_at FROM calls_call
        WHERE tool_id = t.id ORDER BY id DESC LIMIT (SELECT %(of_a_tool)s)
    ) AS newest
    WHERE newest.finished_at IS NOT NULL AND newest.sent_at IS NOT NULL
    GROUP BY newest.tool_id
"""


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    calls: int
    looked_at: int
    ended: int
    wrong: int
    p50: float | None
    p95: float | None

    @property
    def error_share(self) -> float:
        """The share of all calls that ended in error: exact where every call was looked at."""
        return self.wrong / self.looked_at if self.looked_at else 0.0

    @property
    def by_outcome(self) -> dict[str, int]:
        """All calls of the day by how they went, as far as its newest ones say."""
        share = self.calls / self.looked_at if self.looked_at else 0.0
        succeeded, wrong = round(share * (self.ended - self.wrong)), round(share * self.wrong)
        return {"succeeded": succeeded, "error": wrong, "stopped": self.calls - succeeded - wrong}


@dataclass(frozen=True, slots=True)
class Usage:
    days: list[Day]
    ended: int
    wrong: int
    p50: float | None
    p95: float | None
    callers: list[tuple[str, int]]

    @property
    def calls(self) -> int:
        return sum(day.calls for day in self.days)

    @property
    def wrong_percent(self) -> float:
        return 100 * self.wrong / self.ended if self.ended else 0.0


def of_tool(tool_id: int, zone: str) -> Usage:
    """A tool's figures of the last 30 days, by day in this time zone."""
    starts = _midnights(ZoneInfo(zone or "UTC"))
    bounds = [uuid7_floor(start) for start in starts]
    given: dict[str, Any] = {
        "tool": tool_id,
        "lows": bounds[:-1],
        "highs": bounds[1:],
        "low": bounds[0],
        "ended": list(ENDED),
        "wrong": list(WRONG),
        "of_a_day": OF_A_DAY,
        "of_all": OF_ALL,
        "callers": CALLERS_MAX,
    }
    with connection.cursor() as cursor:
        cursor.execute(BY_DAY, given)
        days = [
            Day(start.date(), *row) for start, row in zip(starts, cursor.fetchall(), strict=False)
        ]
        cursor.execute(OVERALL, given)
        ended, wrong, p50, p95 = cursor.fetchone()
        cursor.execute(CALLERS, given)
        return Usage(days, ended, wrong, p50, p95, cursor.fetchall())


def p95_of_tools(tool_ids: Collection[int]) -> dict[int, float]:
    """Seconds that 95 of 100 calls of each of these tools took at most, of its newest ones."""
    if not tool_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(P95_OF_TOOLS, {"tools": list(tool_ids), "of_a_tool": OF_A_TOOL})
        return dict(cursor.fetchall())


def trouble_of(server: Server) -> list[Call]:
    """The last calls of its tools that went wrong, newest first."""
    given: dict[str, Any] = {
        "server": server.pk,
        "looked_at": LOOKED_AT,
        "wrong": list(WRONG),
        "most": ERRORS_MAX,
    }
    with connection.cursor() as cursor:
        cursor.execute(TROUBLE, given)
        ids = [row[0] for row in cursor.fetchall()]
    return list(Call.objects.for_page().filter(pk__in=ids).newest_first())


def _midnights(zone: ZoneInfo) -> list[datetime]:
    """The start of each day, and the end of the last one, today."""
    today = timezone.now().astimezone(zone).date()
    days = [today - timedelta(days=n) for n in range(DAYS - 1, -2, -1)]
    return [datetime.combine(day, time.min, zone) for day in days]
