"""Is this record invented? A demo's record is named so from its first migration on, for good.

The name begins every checkpoint, so that no copy, export or backup of it passes for a real record.
No row of `audit_origin` is ever changed: a record that has begun neither becomes a demo nor ceases
to be one.
"""

from __future__ import annotations

from functools import cache

from django.db import connection
from django.http import HttpRequest

from audit import origins
from audit.models import Signer
from audit.verify import DEMO, DEMO_NOTE

# While it is on, the migration that begins the record (audit/sql/first_origin.sql) marks it.
MARK = "SET countersign.demo = 'on'"
BEGUN = "SELECT to_regclass('audit_origin') IS NOT NULL"

__all__ = ["DEMO_NOTE", "MARK", "is_begun", "is_demo", "mark_pages"]


@cache
def is_demo() -> bool:
    """Read once: a record keeps its name."""
    return origins.name().startswith(DEMO) or Signer.objects.filter(name__startswith=DEMO).exists()


def is_begun() -> bool:
    """Is there a record already, whatever its kind?"""
    with connection.cursor() as cursor:
        cursor.execute(BEGUN)
        return bool(cursor.fetchone()[0])


def mark_pages(_request: HttpRequest) -> dict[str, object]:
    """Template context of every page: whether it carries the banner."""
    return {"is_demo": is_demo}
