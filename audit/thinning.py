"""Fewer checkpoints of what is long past: a sealer signs up to 86,400 a day."""

from __future__ import annotations

from django.db import connection

# The rule is the database's (audit/sql/thinning.sql): a trigger holds every DELETE to it.
THIN = """
    DELETE FROM audit_checkpoint WHERE id IN (
        SELECT id FROM (
            SELECT id, size, at, lag(at) OVER signed AS before, lead(at) OVER signed AS after
            FROM audit_checkpoint WINDOW signed AS (ORDER BY id)
        ) c WHERE audit_may_thin(size, at, before, after)
    )
"""


def may_thin() -> bool:
    """Has this process's database role that right? Only the one for maintenance has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege('audit_checkpoint', 'DELETE')")
        return bool(cursor.fetchone() == (True,))


def thin() -> int:
    """How many checkpoints were removed."""
    with connection.cursor() as cursor:
        cursor.execute(THIN)
        return int(cursor.rowcount)
