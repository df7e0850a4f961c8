"""How PostgreSQL goes about what every call reads and writes, whatever its statistics are."""

import re

import psycopg
import pytest

from calls.content.answers import READ
from calls.queue import queued_call
from calls.record.transitions import MOVE, OPEN
from calls.record.usual_calls import OPEN_USUAL, SUCCEED
from core.connections import PLANS
from core.ids import uuid7
from core.journal import Statement
from core.pipeline import numbered


@pytest.mark.long
@pytest.mark.parametrize("statement", [MOVE, SUCCEED], ids=lambda one: one.name)
def test_the_first_entry_is_found_by_its_key_also_where_statistics_know_none(
    fresh_database: dict[str, str], statement: Statement
) -> None:
    url = fresh_database["DATABASE_OWNER_URL"]
    with psycopg.connect(url, autocommit=True, options=PLANS) as owner:
        # What people set up, before the first call.
        owner.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor) "
            "SELECT 'rule.saved', 'person', 'bob' FROM generate_series(1, 400)"
        )
        owner.execute("ANALYZE audit_entry")
        explain = "EXPLAIN (GENERIC_PLAN, COSTS OFF) " + numbered(statement.sql)
        plan = "\n".join(line for (line,) in owner.execute(explain.encode()).fetchall())

    assert "Index Cond: ((call_id = m.id) AND (seq = 1))" in plan


@pytest.mark.long
@pytest.mark.parametrize("statement", [OPEN, OPEN_USUAL, MOVE, SUCCEED], ids=lambda one: one.name)
def test_months_that_have_none_of_its_calls_are_not_opened(
    fresh_database: dict[str, str], statement: Statement
) -> None:
    """PostgreSQL knows it before a statement begins, from the bounds that go with the lines."""
    with psycopg.connect(
        fresh_database["DATABASE_OWNER_URL"], autocommit=True, options=PLANS
    ) as owner:
        owner.execute("SELECT core_make_months(12)")
        owner.execute(f"PREPARE one AS {numbered(statement.sql)}".encode())
        values = ", ".join(f"'{one}'" for one in statement.of_one({"id": uuid7()}))
        explain = f"EXPLAIN (COSTS OFF) EXECUTE one ({values})"
        plan = "\n".join(line for (line,) in owner.execute(explain.encode()).fetchall())

    # Of sixteen months of calls; where the same is looked for, also those around.
    opened = set(re.findall(r"(calls_call_(?:first|later|[0-9_]{7})) ", plan))
    assert len(opened) <= (5 if "p.tool_id" in plan or "unheard" in plan else 1), plan


@pytest.mark.parametrize(
    ("query", "given"),
    [(READ.as_string(), 3), (queued_call.READ, 1)],
    ids=["how a call stands", "a claim"],
)
def test_who_looks_for_a_call_opens_its_month_alone(
    fresh_database: dict[str, str], query: str, given: int
) -> None:
    with psycopg.connect(
        fresh_database["DATABASE_OWNER_URL"], autocommit=True, options=PLANS
    ) as owner:
        owner.execute("SELECT core_make_months(12)")
        owner.execute(f"PREPARE one AS {numbered(query.replace('%%', '%'))}".encode())
        call_id = uuid7()
        values = [f"'{call_id}'", f"'{call_id}'", f"'{{{call_id}}}'"][:given]
        explain = f"EXPLAIN (COSTS OFF) EXECUTE one ({', '.join(values)})"
        plan = "\n".join(line for (line,) in owner.execute(explain.encode()).fetchall())

    opened = set(re.findall(r"(calls_call_(?:first|later|[0-9_]{7})) ", plan))
    assert len(opened) == 1, plan
