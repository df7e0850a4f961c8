"""Is this the database that the record was begun in, or a copy of it?

A backup that was restored, whatever tool did it, holds the record as it was: calls that were sent
since then are queued once more. Its tables are new ones, though, and PostgreSQL gives a table a
number that no dump holds: the newest origin names its own table and its cluster. While it names
another, or somebody noticed that the files are older ones (audit/rollback.py), nothing is sent,
decided or sealed, until `manage.py restore --declare` begins a new origin.
"""

from __future__ import annotations

from django.db import connection

from audit.models import Origin

AT_HOME = """
    SELECT o.table_oid = o.tableoid::bigint AND o.system_identifier = c.system_identifier::text
        AND NOT EXISTS (SELECT FROM audit_rollback r WHERE r.origin = o.number)
    FROM audit_origin o, pg_control_system() c ORDER BY o.number DESC LIMIT 1
"""
BEGIN = """
    INSERT INTO audit_origin (number, index, kept, system_identifier, table_oid)
    SELECT %s, %s, %s, system_identifier::text, 'audit_origin'::regclass::oid::bigint
    FROM pg_control_system()
"""


def is_at_home() -> bool:
    """False in a restored or copied database that nobody has declared yet."""
    with connection.cursor() as cursor:
        cursor.execute(AT_HOME)
        return bool(cursor.fetchone() == (True,))


def current() -> int:
    return Origin.objects.values_list("number", flat=True).first() or 1


def at(size: int) -> int:
    """The number of the origin that the first `size` leaves end in."""
    before = Origin.objects.filter(index__lt=size)
    return before.values_list("number", flat=True).first() or 1


def name() -> str:
    """The name under which this installation signs checkpoints, before any restore."""
    return Origin.objects.values_list("name", flat=True).first() or "countersign"


def begin(number: int, *, index: int, kept: int) -> None:
    """Starts a new origin; only the database's owner may."""
    with connection.cursor() as cursor:
        cursor.execute(BEGIN, [number, index, kept])
