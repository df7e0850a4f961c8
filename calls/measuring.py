"""How long tools take: measured away from the agents' path, so that automatic tools move to the
workers by themselves and back."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from core.ids import uuid7_floor
from registry.models import Tool

# Long above the first, short again below the second: no tool goes to and fro.
LONG_MS, SHORT_MS = 5000, 4000
# So many of its last calls are looked at, and fewer than this say nothing.
LAST, ENOUGH = 200, 5
# Of tools that were called within this time. What takes longer is measured at its next call.
LATELY = timedelta(minutes=10)

MEASURE = """
    UPDATE registry_tool t SET p95_ms = m.p95_ms, measured = m.n, used_on = m.used_on
    FROM (
        SELECT t.id, count(*) FILTER (WHERE c.says) AS n, max(c.day) AS used_on,
               (1000 * percentile_cont(0.95) WITHIN GROUP (ORDER BY c.seconds)
                    FILTER (WHERE c.says))::int AS p95_ms
        FROM registry_tool t CROSS JOIN LATERAL (
            SELECT extract(epoch FROM finished_at - sent_at)::float AS seconds,
                   (sent_at AT TIME ZONE 'UTC')::date AS day,
                   -- A call of unknown outcome ended when somebody noticed, which says nothing.
                   state IN ('succeeded', 'tool_error', 'timed_out') AS says
            FROM (
                SELECT state, sent_at, finished_at FROM calls_call
                WHERE tool_id = t.id ORDER BY id DESC LIMIT %s
            ) AS newest
            WHERE sent_at IS NOT NULL
        ) AS c
        -- The others have nothing new to say.
        WHERE t.id IN (SELECT tool_id FROM calls_call WHERE id >= %s)
        GROUP BY t.id
    ) AS m
    WHERE m.id = t.id
      AND (t.p95_ms, t.measured, t.used_on) IS DISTINCT FROM (m.p95_ms, m.n, m.used_on)
"""

_OUT_OF_PLACE = Q(is_long=False, p95_ms__gt=LONG_MS) | Q(is_long=True, p95_ms__lt=SHORT_MS)


def measure() -> list[str]:
    """Returns the tools that became long or short by it."""
    with connection.cursor() as cursor:
        cursor.execute(MEASURE, [LAST, uuid7_floor(timezone.now() - LATELY)])
    moved = list(Tool.objects.filter(_OUT_OF_PLACE, measured__gte=ENOUGH))
    for tool in moved:
        # Touching this column makes every process of the agents' path read anew.
        Tool.objects.filter(pk=tool.pk).update(is_long=not tool.is_long)
    return [tool.exposed_name for tool in moved]
