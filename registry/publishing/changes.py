"""Which rows of tools were written since they were read, so that the next reading is of those.

PostgreSQL notes in each row which transaction wrote it. What a reading could not see yet was
written by none that is older than the oldest one that was then under way.
"""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection

# Of more rows than so many all are read.
FEW = 500

# Of another database or server process, as after a restore, and in a transaction that itself
# writes, and may be undone, numbers of transactions tell nothing.
# `age`: so many transactions ago. Rows that were frozen are older than any.
LOOK = """
    SELECT concat_ws(' ', 'registry_tool'::regclass::oid, pg_postmaster_start_time(),
               (SELECT oid FROM pg_database WHERE datname = current_database()),
               inet_server_addr(), inet_server_port(), pg_current_xact_id_if_assigned()),
           pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
           ARRAY(SELECT id FROM registry_server WHERE enabled ORDER BY id),
           ARRAY(SELECT hashtextextended(g.name, t.tool_id) FROM registry_tool_tags t
               JOIN registry_tag g ON g.id = t.tag_id ORDER BY 1),
           found.published, found.touched
    FROM (
        SELECT count(*) FILTER (
                   WHERE t.state = 'published' AND t.published_id IS NOT NULL AND s.enabled),
               (array_agg(t.id) FILTER (WHERE age(t.xmin) <= age(%s::text::xid)))[:%s]
        FROM registry_tool t JOIN registry_server s ON s.id = t.server_id
    ) AS found (published, touched)
"""
XIDS = 1 << 32


class Look(NamedTuple):
    """A cheap view of the catalogue, which shows what may have changed."""

    where: str
    # The oldest transaction under way.
    oldest: int
    enabled: list[int]
    # Alike as long as every tool has the tags that it had: their rows are taken away, too.
    tags: list[int]
    published: int
    # Tools that may have changed since the look before; one more than FEW, where that is most.
    touched: list[int]

    @property
    def is_tagged(self) -> bool:
        return bool(self.tags)

    def tells_all_since(self, before: Look) -> bool:
        return (
            (self.where, self.enabled, self.tags) == (before.where, before.enabled, before.tags)
            and self.oldest >= before.oldest
            and len(self.touched) <= FEW
        )


def look(before: Look | None) -> Look:
    since = before.oldest % XIDS if before else 0
    with connection.cursor() as cursor:
        cursor.execute(LOOK, [str(since), FEW + 1])
        where, oldest, enabled, tags, published, touched = cursor.fetchone()
        return Look(where, oldest, enabled, tags, published, touched or [])
