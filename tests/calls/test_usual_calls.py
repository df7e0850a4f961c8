"""The statements for usual calls write the very rows that those for any call do."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.db import connection

from accounts.models import Agent
from audit.services import SYSTEM
from calls.record.new_call import OpenedCall
from calls.record.states import Executed, State
from calls.record.transitions import MOVE, OPEN, Outcome, ending
from calls.record.usual_calls import OPEN_USUAL, SUCCEED
from core.ids import uuid7
from core.journal import PreparedLine, Statement
from gateway.process.new_call_cache import NewCallTemplate
from tests.calls.test_states import opening, scout

pytestmark = pytest.mark.django_db

__all__ = ["scout"]

ARGUMENTS = b'{"to": "a@example.org"}'
# What no two calls have alike.
VARYING = ("id", "at", "asked_at", "sent_at", "finished_at", "lease_until", "salt", "call_id")
ROWS = {
    "call": "SELECT to_jsonb(c) FROM calls_call c WHERE c.id = %s",
    "entries": "SELECT to_jsonb(e) FROM audit_entry e WHERE e.call_id = %s ORDER BY e.id",
    "result": "SELECT to_jsonb(r) FROM calls_result r WHERE r.call_id = %s",
}


@pytest.fixture
def template(scout: Agent) -> NewCallTemplate:
    return NewCallTemplate(opening(scout, State.RUNNING, mode="inline", lease_owner="us:1").line())


def execute(statement: Statement, line: Mapping[str, Any] | PreparedLine) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.of_one(line))
        return cursor.fetchone()


def begin(template: NewCallTemplate, call_id: UUID, arguments: bytes = ARGUMENTS) -> OpenedCall:
    statement, line = template.written(call_id, arguments, "")
    begun = OpenedCall(*execute(statement, line))
    if begun.names:
        template.learn(begun.names)
    return begun


def finish(move: Statement, call_id: UUID, fence: int = 1) -> bool:
    outcome = Outcome(State.SUCCEEDED, "", Executed.YES, b'{"content":[]}')
    line = ending(call_id, fence, outcome, SYSTEM)
    return execute(move, line) is not None


def rows(call_id: UUID) -> dict[str, list[dict[str, Any]]]:
    read: dict[str, list[dict[str, Any]]] = {}
    with connection.cursor() as cursor:
        for name, sql in ROWS.items():
            cursor.execute(sql, [call_id])
            found = [orjson.loads(row) for (row,) in cursor.fetchall()]
            for row in found:
                row |= {column: row[column] is None for column in VARYING if column in row}
            read[name] = found
    return read


def test_they_write_what_the_others_write(template: NewCallTemplate) -> None:
    first, second = UUID(int=1), UUID(int=2)
    assert template.written(first, ARGUMENTS, "")[0] is OPEN
    assert begin(template, first).is_open
    assert template.written(second, ARGUMENTS, "")[0] is OPEN_USUAL
    assert begin(template, second).is_open
    assert finish(MOVE, first)
    assert finish(SUCCEED, second)

    usual = rows(second)
    assert [entry["to_state"] for entry in usual["entries"]] == ["running", "succeeded"]
    assert len(usual["result"]) == 1
    assert usual == rows(first)


def test_a_line_that_comes_twice_changes_nothing(template: NewCallTemplate) -> None:
    call = UUID(int=2)
    begin(template, UUID(int=1))
    begin(template, call)

    again = begin(template, call)

    assert (again.is_open, again.names) == (True, None)
    assert finish(SUCCEED, call)
    assert not finish(SUCCEED, call)
    assert len(rows(call)["entries"]) == 2


def test_who_was_given_up_ends_nothing(template: NewCallTemplate) -> None:
    call = UUID(int=1)
    begin(template, call)

    assert not finish(SUCCEED, call, fence=2)
    assert rows(call)["call"][0]["state"] == "running"


def test_the_same_is_not_opened_while_nobody_heard_of_it(scout: Agent) -> None:
    guarded = opening(scout, State.RUNNING, mode="inline", guarded=True).line()
    template, unheard = NewCallTemplate(guarded), uuid7()
    for n, call in enumerate((uuid7(), unheard), start=1):
        begin(template, call, orjson.dumps({"n": n}))
    assert finish(SUCCEED, unheard)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE calls_call SET unheard_at = clock_timestamp() WHERE id = %s", [unheard]
        )

    assert not begin(template, uuid7(), orjson.dumps({"n": 2})).is_open
    assert begin(template, uuid7(), orjson.dumps({"n": 4})).is_open
