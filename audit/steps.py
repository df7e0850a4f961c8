"""Entries together with all steps of their calls."""

from __future__ import annotations

from audit.models import Entry

# So many of a call are shown: of its moves, and of what else happened to it. The filter has all.
STEPS_MAX = 40

# Each by its key: as a plain join, PostgreSQL expects as many as could be, and reads the table.
STEPS = """
    SELECT e.* FROM (
        SELECT unnest(%(shown)s::bigint[]) AS id
        UNION
        SELECT s.id FROM (
            SELECT DISTINCT call_id FROM audit_entryrow
            WHERE id = ANY(%(shown)s) AND call_id IS NOT NULL
        ) AS c CROSS JOIN LATERAL (
            (SELECT id FROM audit_entryrow WHERE call_id = c.call_id AND seq IS NOT NULL
             ORDER BY seq LIMIT %(most)s)
            UNION ALL
            (SELECT id FROM audit_entryrow WHERE call_id = c.call_id AND seq IS NULL
             ORDER BY id LIMIT %(most)s)
        ) AS s
    ) AS w CROSS JOIN LATERAL (SELECT * FROM audit_entry WHERE id = w.id LIMIT 1) AS e
    ORDER BY e.id
"""


def load(shown: list[int]) -> list[Entry]:
    """These entries, and all steps of their calls, oldest first."""
    wanted = {"shown": shown, "most": STEPS_MAX}
    return list(Entry.objects.raw(STEPS, wanted)) if shown else []
