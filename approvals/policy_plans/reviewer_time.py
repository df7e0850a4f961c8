"""How long decisions took, from the card's first showing to the vote: what calls cost people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.utils import timezone

DAYS = 90
LOOKED_AT = 20_000
# So few of one tool say less than those of all.
LEAST = 5

_SQL = """
SELECT c.tool_name, count(*),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM v.at - s.at)::float)
FROM (
    SELECT * FROM approvals_vote WHERE fallen_at IS NULL AND at >= %(since)s
    ORDER BY at DESC LIMIT %(most)s
) v
JOIN calls_call c ON c.id = v.approval_id
JOIN approvals_cardview s
    ON s.call_id = v.approval_id AND s.person_id = v.person_id AND s.at <= v.at
GROUP BY GROUPING SETS ((c.tool_name), ())
"""


class ReviewerTime(NamedTuple):
    """Median seconds of a vote: of all tools (None: nothing was decided), and by tool."""

    all_s: float | None
    votes: int
    by_tool: Mapping[str, float]

    def seconds(self, tool: str) -> float:
        return self.by_tool.get(tool, self.all_s or 0.0)


def reviewer_time() -> ReviewerTime:
    given: dict[str, Any] = {"since": timezone.now() - timedelta(days=DAYS), "most": LOOKED_AT}
    with connection.cursor() as cursor:
        cursor.execute(_SQL, given)
        rows = cursor.fetchall()
    whole = next(((n, median) for tool, n, median in rows if tool is None), (0, None))
    by_tool = {tool: median for tool, n, median in rows if tool is not None and n >= LEAST}
    return ReviewerTime(whole[1], whole[0], by_tool)
