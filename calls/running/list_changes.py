"""A server says in the middle of calls that it lists something else: passed on to whoever listens
to servers (registry/discovery/list_change_listener.py), which may be another process.

Some tell nobody but those for whom they just did something; a process tells its own pipes alone.
"""

from __future__ import annotations

import time

from core.ids import uuid7
from core.journal import GroupCommit, Statement

# However often one says so.
QUIET_S = 0.2

PASS_ON = Statement(
    "pass on that lists changed",
    """
SELECT a.id, pg_notify('countersign_lists', a.slug)::text
FROM json_to_recordset(%s::json) AS a(id uuid, slug text)
""",
    order=5,
)


class ListChangeRelay:
    def __init__(self, journal: GroupCommit) -> None:
        self._journal = journal
        self._told_at: dict[str, float] = {}

    def heard(self, key: str) -> None:
        """`key`: of a connection, which begins with its server's name."""
        slug, now = key.rpartition(":")[0], time.monotonic()
        if now - self._told_at.get(slug, float("-inf")) < QUIET_S:
            return
        self._told_at[slug] = now
        self._journal.write_later((PASS_ON, {"id": uuid7(), "slug": slug}))
