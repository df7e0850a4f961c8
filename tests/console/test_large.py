"""Pages of a large house: few queries, and no large table read from end to end.

All ten thousand tools are here. Twenty thousand calls stand for a million: the planner is told that
every page of what grows with them holds fifty times as many rows, and plans accordingly.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.services import SYSTEM, record
from benchmarks import crowd, pages
from calls.views.usage_figures import OF_A_TOOL, P95_OF_TOOLS
from registry import services
from registry.models import Tool
from tests.database import Cleaner

pytestmark = pytest.mark.long

TIMES = 50
FEW = 1000
GROWING = "relnamespace = 'public'::regnamespace AND relname ~ '^(calls|approvals|audit)_'"
DENSER = f"""
    UPDATE pg_class SET reltuples = reltuples * %s
    WHERE relkind IN ('r', 'i') AND reltuples > 0 AND {GROWING}
"""
# What the planner was told would be counted anew in the middle of a slow run.
COUNTING = """
    SELECT format('ALTER TABLE %I {what}', relname) FROM pg_class WHERE relkind = 'r' AND {of}
"""


@pytest.fixture(scope="module")
def large(django_db_setup: None, django_db_blocker: Any, cleaner: Cleaner) -> Iterator[None]:
    with django_db_blocker.unblock():
        try:
            cleaner.reclaim()
            _tell(cleaner, "SET (autovacuum_enabled = off)")
            crowd.fill(cleaner.connection, servers=200, tools=10_000, calls=20_000)
            cleaner.connection.execute(DENSER, [TIMES])
            yield
        finally:
            _tell(cleaner, "RESET (autovacuum_enabled)")
            cleaner.reclaim()


def _tell(cleaner: Cleaner, what: str) -> None:
    statements = cleaner.connection.execute(COUNTING.format(what=what, of=GROWING)).fetchall()
    for (statement,) in statements:
        cleaner.connection.execute(statement)


@pytest.mark.parametrize("page", ["/catalogue/", "/queue/", "/calls/", "/audit/", ""])
def test_pages_ask_little_and_read_no_large_table_whole(large: None, db: None, page: str) -> None:
    client: Client = pages.visitor()
    of_page = [path for path in pages.paths(**pages.some()) if _is_of(path, page)]
    assert of_page
    # What a process reads once.
    client.get(of_page[0])

    seen = [pages.look(client, path) for path in of_page]

    assert [(one.path, one.scans) for one in seen if one.scans] == []
    over = [one for one in seen if one.queries > pages.QUERIES_MAX]
    assert not over, "\n".join([over[0].path, *over[0].asked])


def _is_of(path: str, page: str) -> bool:
    bare = path.partition("?")[0]
    return bare == page if page else bare not in pages.FILTERS


def test_of_a_busy_tool_only_the_newest_calls_are_read(large: None, db: None) -> None:
    count = "SELECT tool_id, count(*) FROM calls_call GROUP BY 1 ORDER BY 2 DESC LIMIT 50"
    with connection.cursor() as cursor:
        cursor.execute(count)
        busy = dict(cursor.fetchall())
        assert max(busy.values()) > 2 * OF_A_TOOL
        read = _rows_read(P95_OF_TOOLS, {"tools": list(busy), "of_a_tool": OF_A_TOOL})

    assert read <= sum(min(n, OF_A_TOOL) for n in busy.values()) + len(busy)


def test_what_is_seldom_done_is_found_without_reading_other_entries(large: None, db: None) -> None:
    tool = Tool.objects.get(exposed_name=pages.some()["tool"])
    record("tool.retired", actor=SYSTEM, server=tool.server.slug, tool=tool.exposed_name)
    with CaptureQueriesContext(connection) as captured:
        assert not services.rollable(tool)

    (asked,) = [query["sql"] for query in captured if "audit_entry" in query["sql"]]
    assert _rows_read(asked) < FEW


def test_a_histogram_takes_times_from_an_index_alone(
    large: None, db: None, cleaner: Cleaner
) -> None:
    # As autovacuum, which is off here, says of what does not change any more.
    cleaner.connection.execute("VACUUM audit_entryrow")
    client = pages.visitor()
    with CaptureQueriesContext(connection) as captured:
        client.get("/audit/?group=call&state=timed_out")

    (asked,) = [query["sql"] for query in captured if "width_bucket" in query["sql"]]
    assert "Index Only Scan Backward using audit_entry_action_at" in _plan(asked)


def _plan(asked: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + asked)
        return "\n".join(line for (line,) in cursor.fetchall())


def _rows_read(asked: str, given: dict[str, Any] | None = None) -> int:
    """How many rows the plan takes from its tables and their indexes."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + asked, given)
        (found,) = cursor.fetchone()
    top = json.loads(found)[0]["Plan"] if isinstance(found, str) else found[0]["Plan"]
    read = [node for node in pages.nodes(top) if "Relation Name" in node]
    return int(sum(node["Actual Rows"] * node["Actual Loops"] for node in read))
