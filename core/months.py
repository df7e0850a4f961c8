"""Tables whose rows stand in months (core/sql/months.sql): are those made in time, and guarded?"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

from core.errors import CountersignError

_HELD = (
    "No partitions were made: others hold a table. The next run of `manage.py maintain` does it."
)
# Fewer whole months ahead than this, and nobody made any for a long time.
AHEAD = 1

# What each partition must have of its table, whatever made it. PostgreSQL writes a trigger the same
# way for both, but for the name of the table.
UNLIKE = r"""
    SELECT i.inhrelid::regclass::text, t.tgname
    FROM pg_inherits i JOIN pg_trigger t ON t.tgrelid = i.inhparent AND NOT t.tgisinternal
    WHERE NOT EXISTS (
        SELECT FROM pg_trigger o
        WHERE o.tgrelid = i.inhrelid AND o.tgname = t.tgname AND o.tgenabled IN ('O', 'A')
          AND regexp_replace(pg_get_triggerdef(o.oid), ' ON \S+ ', ' ON ')
              = regexp_replace(pg_get_triggerdef(t.oid), ' ON \S+ ', ' ON '))
      AND i.inhparent IN (SELECT partrelid FROM pg_partitioned_table)
    ORDER BY 1, 2
"""
GRANTED = """
    SELECT DISTINCT c.oid::regclass::text,
        CASE WHEN a.grantee = 0 THEN 'everybody' ELSE a.grantee::regrole::text END
    FROM pg_class c CROSS JOIN LATERAL (
        SELECT r.grantee FROM aclexplode(c.relacl) r
        UNION ALL
        SELECT r.grantee FROM pg_attribute t CROSS JOIN aclexplode(t.attacl) r
        WHERE t.attrelid = c.oid
    ) a
    WHERE c.relispartition AND c.relkind = 'r' AND a.grantee <> c.relowner ORDER BY 1, 2
"""
ENDS = """
    SELECT p.partrelid::regclass::text, a.attname, to_char(core_months_end(p.partrelid), 'YYYY-MM'),
        core_months_end(p.partrelid) < date_trunc('month', clock_timestamp(), 'UTC')
            + make_interval(months => %s), core_first_id(core_months_end(p.partrelid))
    FROM pg_partitioned_table p
    JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
    JOIN pg_class c ON c.oid = p.partrelid AND c.relnamespace = 'public'::regnamespace
    ORDER BY 1
"""


def may_make() -> bool:
    """Has this process's database role that right? Where one is kept for maintenance, only that."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_function_privilege('core_make_months(int)', 'EXECUTE')")
        return bool(cursor.fetchone() == (True,))


class TableHeld(CountersignError):
    """Others hold a table for longer than agents should wait; the next time does as well."""


def make() -> list[str]:
    """The partitions that were missing. Raises TableHeld."""
    with connection.cursor() as cursor:
        try:
            cursor.execute("SELECT core_make_months()")
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise TableHeld(_HELD) from error
            raise
        return [name for (name,) in cursor.fetchall()]


def unguarded() -> Iterator[str]:
    """Ways around the triggers of a month's table, as the catalogue has it now (those of tables:
    core/guards.py)."""
    with connection.cursor() as cursor:
        cursor.execute(UNLIKE)
        for part, trigger in cursor.fetchall():
            yield f"Partition {part} lacks the trigger {trigger} of its table, or has another one."
        cursor.execute(GRANTED)
        for part, role in cursor.fetchall():
            yield f"Partition {part} can be reached past its table: {role} has rights on it."


def overdue() -> Iterator[str]:
    """Tables that soon have no partition for what comes, or that had none."""
    with connection.cursor() as cursor:
        cursor.execute(ENDS, [AHEAD + 1])
        for table, key, month, is_late, end in cursor.fetchall():
            if is_late:
                yield f"{table} has partitions until {month} alone: does `manage.py maintain` run?"
            cursor.execute(f"SELECT EXISTS (SELECT FROM {table} WHERE {key} >= %s)", [end])
            if cursor.fetchone() == (True,):
                yield f"{table} has rows of {month} or later, for which no partition was made."
