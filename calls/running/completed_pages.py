"""A server says that a page which it had somebody open is done with: passed on to the session in
which its agent was asked (gateway/process/completed_pages.py), whose stream another process may
have."""

from __future__ import annotations

from core.ids import uuid7
from core.journal import GroupCommit, Statement

DONE = Statement(
    "pass on that a page is done with",
    """
SELECT a.id, pg_notify('countersign_page', a.session || ' ' || a.page)::text
FROM json_to_recordset(%s::json) AS a(id uuid, session text, page text)
""",
    order=5,
)


def notify(journal: GroupCommit, session: str, page: str) -> None:
    """`session`: by its key."""
    journal.write_later((DONE, {"id": uuid7(), "session": session, "page": page}))
