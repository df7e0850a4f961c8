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
# Of tools that were called within this time. What takes longer is measured at its next call, or
# when a process looks for the first time: nobody measures while nothing runs.
LATELY, AT_FIRST = timedelta(minutes=10), timedelta(days=30)

# How long a call took. Of a task its server's own times may tell it better than our last look.
SECONDS = """LEAST(
    extract(epoch FROM finished_at - sent_at)::float,
    (NULLIF(upstream_task, '')::jsonb ->> 'took_s')::float
)"""
MEASURE = f"""
    UPDATE registry_tool t SET p95_ms = m.p95_ms, measured = m.n, used_on = m.used_on
    FROM (
        SELECT t.id, count(*) FILTER (WHERE c.says) AS n, max(c.day) AS used_on,
               (1000 * percentile_cont(0.95) WITHIN GROUP (ORDER BY c.seconds)
                    FILTER (WHERE c.says))::int AS p95_ms
        FROM registry_tool t CROSS JOIN LATERAL (
            SELECT {SECONDS} AS seconds,
                   (sent_at AT TIME ZONE 'UTC')::date AS day,
                   -- A call of unknown outcome ended when somebody noticed, which says nothing.
                   state IN ('succeeded', 'tool_error', 'timed_out') AS says
            FROM (
                SELECT state, sent_at, finished_at, upstream_task FROM calls_call
                WHERE tool_id = t.id ORDER BY id DESC LIMIT (SELECT %s)
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


class _Looked:
    """Whether this process looked back as far as pages do."""

    far = False


def measure() -> list[str]:
    """Returns the tools that became long or short by it."""
    back = LATELY if _Looked.far else AT_FIRST
    with connection.cursor() as cursor:
        cursor.execute(MEASURE, [LAST, uuid7_floor(timezone.now() - back)])
    _Looked.far = True
    moved = list(Tool.objects.filter(_OUT_OF_PLACE, measured__gte=ENOUGH))
    for tool in moved:
        # Touching this column makes every process of the agents' path read anew.
        Tool.objects.filter(pk=tool.pk).update(is_long=not tool.is_long)
    return [tool.exposed_name for tool in moved]
