"""How long calls of a tool take: what to expect of one that says nothing about itself."""

from __future__ import annotations

from django.db import connection

from calls.measuring import SECONDS
from calls.models import Call

# Of so many newest calls; fewer than the least say nothing.
LOOKED_AT, LEAST = 50, 5
MEDIAN = f"""
    SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM (
        SELECT state, {SECONDS} AS seconds
        FROM calls_call WHERE tool_id = %s AND id < %s ORDER BY id DESC LIMIT %s
    ) newest WHERE state = 'succeeded'
"""


def seconds(call: Call) -> float | None:
    if call.tool_id is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(MEDIAN, [call.tool_id, call.pk, LOOKED_AT])
        count, median = cursor.fetchone()
    return median if count >= LEAST else None
