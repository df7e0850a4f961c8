"""Lines find entries again, and are copies: do they say what their entries say?"""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection

from audit.leaves import SEALED
from audit.models.finding import LINE_COLUMNS, LINE_OF_ENTRY

_LINE = ", ".join(f"l.{column.strip()}" for column in LINE_COLUMNS.split(","))
# Sealed entries whose line is another one, or gone.
OTHERWISE = f"""
    SELECT e.id FROM audit_entry e LEFT JOIN audit_line l ON l.entry_id = e.id
    WHERE e.id = ANY(%s) AND EXISTS (SELECT FROM audit_batch b WHERE b.ids @> e.id)
      AND ROW({_LINE}) IS DISTINCT FROM ROW({LINE_OF_ENTRY})
    ORDER BY e.id
"""
# Lines of what was never sealed: they can show an entry under names that it has not.
STRAY = f"""
    SELECT l.entry_id FROM audit_line l CROSS JOIN {SEALED} WHERE NOT sealed.ids @> l.entry_id
    ORDER BY l.entry_id LIMIT %s
"""


def disagreeing(ids: Collection[int]) -> list[int]:
    """Of these entries, those that are not found by what they say."""
    with connection.cursor() as cursor:
        cursor.execute(OTHERWISE, [list(ids)])
        return [pk for (pk,) in cursor.fetchall()]


def stray(most: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(STRAY, [most])
        return [pk for (pk,) in cursor.fetchall()]
