"""How PostgreSQL goes about what the journal writes, whatever its statistics are."""

import psycopg

from calls.record.transitions import MOVE
from core.journal import PLANS


def test_the_first_entry_is_found_by_its_key_also_where_statistics_know_none(
    fresh_database: dict[str, str],
) -> None:
    url = fresh_database["DATABASE_OWNER_URL"]
    with psycopg.connect(url, autocommit=True, options=PLANS) as owner:
        # What people set up, before the first call.
        owner.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor) "
            "SELECT 'rule.saved', 'person', 'bob' FROM generate_series(1, 400)"
        )
        owner.execute("ANALYZE audit_entry")
        explain = "EXPLAIN (GENERIC_PLAN, COSTS OFF) " + MOVE.sql.replace("%s", "$1")
        plan = "\n".join(line for (line,) in owner.execute(explain.encode()).fetchall())

    assert "Index Cond: ((call_id = m.id) AND (seq = 1))" in plan
