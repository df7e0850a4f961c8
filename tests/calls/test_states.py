"""What the database itself refuses, asked directly as the application's own role."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from accounts.models import Agent, User
from audit.models import Entry
from audit.services import SYSTEM
from calls.models import Call
from calls.record.new_call import NewCall
from calls.record.states import FIRST, MOVES, Executed, State
from calls.record.transitions import OPEN, Move, move_now
from core.ids import first_id, uuid7
from registry.models import Server, Tool

pytestmark = pytest.mark.django_db

LEGAL = [(source, target) for source, targets in MOVES.items() for target in targets]
ILLEGAL = [pair for pair in product(State, State) if pair not in LEGAL and pair[0] != pair[1]]


@pytest.fixture
def scout() -> Agent:
    bob = User.objects.create(username="bob")
    return Agent.objects.create(name="scout", owner=bob)


def opening(scout: Agent, state: State, **changes: Any) -> NewCall:
    values: dict[str, Any] = {
        "id": uuid7(),
        "agent_id": scout.pk,
        "agent": scout.name,
        "token_id": None,
        "person_id": scout.owner_id,
        "person": scout.owner.username,
        "toolset": "default",
        "server_id": 1,
        "server": "mailer",
        "tool_id": 1,
        "definition_id": 1,
        "definition_digest": "d" * 64,
        "tool_name": "mailer.send",
        "arguments": b'{"to": "a@example.org"}',
        "origin": "mcp",
        "mode": "background",
        "effect": "ask",
        "rule_id": None,
        "rule": "",
        "reason": "No rule covers this call.",
        "state": state,
    }
    return NewCall(**{**values, **changes})


def opened(opening: NewCall) -> UUID:
    with connection.cursor() as cursor:
        cursor.execute(OPEN.sql, [orjson.dumps([opening.line()]).decode()])
    return opening.id


def move(call_id: UUID, source: State, target: State) -> Move:
    back = (source, target) == (State.RUNNING, State.QUEUED)
    return Move(call_id, source, target, SYSTEM, executed=Executed.NO if back else None)


def bring_to(scout: Agent, state: State) -> UUID:
    """A call in `state`, by the shortest legal way."""
    ways: dict[State, list[State]] = {first: [first] for first in FIRST}
    while state not in ways:
        for source, target in LEGAL:
            if source in ways and target not in ways:
                ways[target] = [*ways[source], target]
    first, *rest = ways[state]
    call_id = opened(opening(scout, first))
    for source, target in zip([first, *rest], rest, strict=False):
        assert move_now(move(call_id, source, target))
    return call_id


def sql(text: str, *values: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(text, values)


def entry_for(call_id: UUID, source: State, target: State) -> None:
    seq = Call.objects.values_list("seq", flat=True).get(pk=call_id)
    Entry.objects.create(
        action=f"call.{target}",
        actor_kind="system",
        actor="forger",
        call_id=call_id,
        seq=seq + 1,
        from_state=source,
        to_state=target,
    )


def test_these_tests_run_as_the_role_that_owns_nothing() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper OR pg_has_role(current_user, tableowner, 'member') "
            "FROM pg_tables, pg_roles WHERE tablename = 'calls_call' AND rolname = current_user"
        )
        assert cursor.fetchone() == (False,)


@contextmanager
def undone() -> Iterator[None]:
    """Of two calls that ask for the same, only one may wait."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def test_it_moves_along_every_legal_pair(scout: Agent) -> None:
    for source, target in LEGAL:
        with undone():
            call_id = bring_to(scout, source)

            assert move_now(move(call_id, source, target)), (source, target)

            call = Call.objects.get(pk=call_id)
            entries = Entry.objects.of_call(call_id)
            states = list(entries.values_list("from_state", "to_state", "seq"))
            assert call.state == target
            assert states[-1] == (source, target, call.seq)


@pytest.mark.long
def test_it_refuses_every_illegal_pair(scout: Agent) -> None:
    refused = pytest.raises(DatabaseError, match="a call cannot move like this")
    for source, target in ILLEGAL:
        with undone():
            call_id = bring_to(scout, source)

            with refused, transaction.atomic():
                move_now(Move(call_id, source, target, SYSTEM))

            # Nor with a forged entry beside it and plain SQL.
            entry_for(call_id, source, target)
            change = "state = %s, seq = seq + 1"
            with refused:
                sql(f"UPDATE calls_call SET {change} WHERE id = %s", target, call_id)


@pytest.mark.parametrize("state", [state for state in State if state not in FIRST])
def test_it_refuses_a_call_born_in_a_later_state(scout: Agent, state: State) -> None:
    with pytest.raises(DatabaseError, match="a call cannot begin like this"), transaction.atomic():
        opened(opening(scout, state))


def test_it_refuses_a_move_without_its_entry(scout: Agent) -> None:
    change = "state = %s, seq = seq + 1, executed = 'no'"
    refused = pytest.raises(DatabaseError, match="a move without its entry")
    for source, target in LEGAL:
        with undone():
            call_id = bring_to(scout, source)

            with refused:
                sql(f"UPDATE calls_call SET {change} WHERE id = %s", target, call_id)


@pytest.mark.parametrize("executed", [None, Executed.UNKNOWN, Executed.YES])
def test_what_may_have_been_sent_does_not_go_back_to_the_queue(
    scout: Agent, executed: Executed | None
) -> None:
    call_id = bring_to(scout, State.RUNNING)
    back = Move(call_id, State.RUNNING, State.QUEUED, SYSTEM, executed=executed)

    with pytest.raises(DatabaseError, match="a call cannot move like this"), transaction.atomic():
        move_now(back)


def test_a_later_attempt_that_was_not_sent_does_not_undo_an_earlier_one(scout: Agent) -> None:
    server = Server.objects.create(slug="mailer", owner=scout.owner)
    Tool.objects.create(pk=1, server=server, name="send", safe_to_repeat=True)
    call_id = bring_to(scout, State.RUNNING)
    lost = Move(call_id, State.RUNNING, State.QUEUED, SYSTEM, executed=Executed.UNKNOWN)
    assert move_now(lost)
    assert move_now(move(call_id, State.QUEUED, State.RUNNING))

    assert move_now(Move(call_id, State.RUNNING, State.FAILED, SYSTEM, executed=Executed.NO))

    assert Call.objects.get(pk=call_id).executed == Executed.UNKNOWN


def test_it_refuses_a_move_that_leaves_the_count_alone(scout: Agent) -> None:
    call_id = bring_to(scout, State.HELD)

    with pytest.raises(DatabaseError, match="a call cannot move like this"):
        sql("UPDATE calls_call SET state = 'approved' WHERE id = %s", call_id)


def test_it_refuses_a_call_without_its_entry(scout: Agent) -> None:
    call = Call.objects.get(pk=bring_to(scout, State.REFUSED))
    call.pk = uuid7()

    with pytest.raises(DatabaseError, match="a call without its entry"), transaction.atomic():
        call.save(force_insert=True)


CHANGES = [
    """arguments = '{"to": "mallory@example.org"}'""",
    "arguments_digest = repeat('0', 64)",
    "agent_id = agent_id + 1",
    "person_id = person_id + 1",
    "tool_id = 2",
    "tool_name = 'mailer.delete'",
    "definition_id = 2",
    "server_id = 2",
    "toolset = 'other'",
    "effect = 'allow'",
    "mode = 'inline'",
    "revision = '2026-07-28'",
    "client = 'another'",
    "request_key = 'x'",
    "reason = 'A rule allows it.'",
    "asked_at = now() - interval '1 day'",
    "id = gen_random_uuid()",
]


@pytest.mark.parametrize("state", [State.HELD, State.QUEUED, State.RUNNING, State.SUCCEEDED])
def test_it_refuses_to_change_what_was_asked(scout: Agent, state: State) -> None:
    call_id = bring_to(scout, state)

    for change in CHANGES:
        with pytest.raises(DatabaseError, match="what was asked is never changed"):
            sql(f"UPDATE calls_call SET {change} WHERE id = %s", call_id)


ENDINGS = [
    "executed = 'unknown'",
    "outcome = 'It went well.'",
    "result_digest = repeat('0', 64)",
    "result_size = 1",
    "sent_at = now() - interval '1 day'",
    "finished_at = now() - interval '1 day'",
]


@pytest.mark.parametrize("state", [State.HELD, State.RUNNING, State.SUCCEEDED, State.UNKNOWN])
def test_it_refuses_to_change_how_a_call_went(scout: Agent, state: State) -> None:
    call_id = bring_to(scout, state)

    for change in ENDINGS:
        with pytest.raises(DatabaseError, match="how a call went is written once"):
            sql(f"UPDATE calls_call SET {change} WHERE id = %s", call_id)


def test_a_move_says_what_came_back_as_its_entry_does(scout: Agent) -> None:
    call_id = bring_to(scout, State.RUNNING)
    entry_for(call_id, State.RUNNING, State.SUCCEEDED)

    with pytest.raises(DatabaseError, match="a move without its entry"):
        sql(
            "UPDATE calls_call SET state = 'succeeded', seq = seq + 1,"
            " result_digest = encode(sha256('{}'), 'hex') WHERE id = %s",
            call_id,
        )


@pytest.mark.parametrize("state", [State.REFUSED, State.RUNNING, State.SUCCEEDED])
def test_it_refuses_a_result_that_no_move_brought(scout: Agent, state: State) -> None:
    call_id = bring_to(scout, state)
    result = "INSERT INTO calls_result (call_id, kind, body, kept_until) VALUES (%s, 'result', {})"

    for values in ("'{}', NULL", "'', now()"):
        with pytest.raises(DatabaseError, match="a result that no move of its call brought"):
            sql(result.format(values), call_id)


@pytest.mark.parametrize("state", [State.REFUSED, State.HELD, State.SUCCEEDED])
def test_it_refuses_a_part_of_a_result_of_a_call_that_does_not_run(
    scout: Agent, state: State
) -> None:
    call_id = bring_to(scout, state)

    with pytest.raises(DatabaseError, match="a part of a result, of a call that does not run"):
        sql("INSERT INTO calls_resultpart (call_id, number, body) VALUES (%s, 0, 'x')", call_id)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entryrow SET reason = NULL",
        "DELETE FROM audit_entryrow",
        "TRUNCATE audit_entryrow",
        "DELETE FROM calls_call",
        "TRUNCATE calls_call CASCADE",
        "UPDATE calls_result SET body = 'x'",
        "UPDATE calls_resultpart SET body = 'x'",
        "UPDATE approvals_vote SET approve = true",
        "DELETE FROM approvals_vote",
        "UPDATE registry_definition SET body = '{}'",
        "DELETE FROM registry_definition",
        "ALTER TABLE audit_entryrow DISABLE TRIGGER ALL",
        "DROP TABLE audit_entryrow CASCADE",
        "SET session_replication_role = replica",
    ],
)
def test_it_refuses_to_rewrite_the_record(scout: Agent, statement: str) -> None:
    bring_to(scout, State.SUCCEEDED)

    with pytest.raises(DatabaseError):
        sql(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entryrow SET reason = NULL",
        "DELETE FROM audit_entryrow",
        "TRUNCATE audit_entryrow",
        "DELETE FROM calls_call",
    ],
)
def test_even_the_owner_is_refused_whatever_it_asks_to_ignore(
    fresh_database: dict[str, str], statement: str
) -> None:
    with psycopg.connect(fresh_database["DATABASE_OWNER_URL"]) as owner:
        owner.execute(
            "SELECT set_config('pgtrigger.ignore',"
            " '{pgtrigger_no_update_0bb6f,pgtrigger_only_forgotten_ea972}', true)"
        )
        owner.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor) VALUES ('a.b', 'system', 'x')"
        )

        with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
            owner.execute(statement)


def test_a_move_happens_once(scout: Agent) -> None:
    call_id = bring_to(scout, State.HELD)

    first = move_now(Move(call_id, State.HELD, State.DENIED, SYSTEM))
    second = move_now(Move(call_id, State.HELD, State.WITHDRAWN, SYSTEM))

    assert (first, second) == (True, False)


def test_a_stale_fence_moves_nothing(scout: Agent) -> None:
    call_id = bring_to(scout, State.RUNNING)

    assert not move_now(Move(call_id, State.RUNNING, State.SUCCEEDED, SYSTEM, fence=0))
    assert move_now(Move(call_id, State.RUNNING, State.SUCCEEDED, SYSTEM, fence=1))


def test_of_two_alike_in_one_statement_one_waits(scout: Agent) -> None:
    one, two = opening(scout, State.HELD), opening(scout, State.HELD)
    lines = [orjson.dumps(each.line()) for each in (one, two)]
    with connection.cursor() as cursor:
        cursor.execute(OPEN.sql, [f"[{lines[0].decode()},{lines[1].decode()}]"])

    assert [call.pk for call in Call.objects.filter(state=State.HELD)] == [one.id]


def test_the_same_joins_a_call_of_another_month_that_waits(scout: Agent) -> None:
    opened(opening(scout, State.HELD))

    opened(opening(scout, State.HELD, id=first_id(timezone.now() + timedelta(days=40))))

    assert Call.objects.filter(state=State.HELD).count() == 1
