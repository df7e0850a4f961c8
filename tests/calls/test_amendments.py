"""What people may change of a call, asked directly as the application's own role: only what a held
call is to send, only by an amendment, and only with its entry in the same statement."""

import hashlib
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.db import DatabaseError, connection, transaction

from accounts.models import Agent, User
from audit.models import Entry
from calls.models import Amendment, Call
from calls.record.new_call import NewCall
from calls.record.statements import call_digest, statement, with_arguments
from calls.record.states import State
from calls.record.transitions import Amending, amend_now, move_now
from core.ids import uuid7
from tests.calls.test_states import LEGAL, move, opened, sql
from tests.calls.test_states import opening as an_opening
from tests.calls.test_states import scout as scout

pytestmark = pytest.mark.django_db

OTHER = b'{"to": "b@example.org"}'


class Line:
    """A published tool, as far as a statement looks at it."""

    server_slug, name, exposed_name, digest = "mailer", "send", "mailer.send", "d" * 64

    class connection:
        transport, url, argv, key = "http", "http://127.0.0.1:9/mcp", (), "k"


BOUND = statement(
    agent=(1, "scout"),
    person=(2, "bob"),
    tool=Line(),  # type: ignore[arg-type]
    arguments=b'{"to": "a@example.org"}',
)


@pytest.fixture
def alice(scout: Agent) -> User:
    return User.objects.create(username="alice")


def opening(scout: Agent, state: State, **changes: Any) -> NewCall:
    return an_opening(scout, state, statement=BOUND, **changes)


def held(scout: Agent) -> Call:
    return Call.objects.get(pk=opened(opening(scout, State.HELD)))


def amending(call: Call, by: User, **changes: Any) -> Amending:
    values: dict[str, Any] = {
        "id": call.pk,
        "seen": call.call_digest,
        "statement": call.statement,
        "arguments": OTHER,
        "person": by.actor,
    }
    return Amending(**{**values, **changes})


def an_amendment(call_id: UUID, by: User, *, seq: int, arguments: bytes = OTHER) -> Amendment:
    """The row alone, which anybody may write who may run SQL."""
    return Amendment.objects.create(
        call_id=call_id,
        seq=seq,
        person=by,
        arguments=arguments,
        arguments_digest=hashlib.sha256(arguments).hexdigest(),
        call_digest=call_digest(with_arguments(BOUND, arguments)),
    )


def an_entry(call_id: UUID, seq: int, **changes: Any) -> None:
    values = {"action": "call.amended", "actor_kind": "person", "from_state": "held"}
    Entry.objects.create(
        **{**values, "to_state": "held", "call_id": call_id, "seq": seq, **changes}
    )


def point_to(amendment: Amendment, *, seq: int = 2, bound: str = "", digest: str = "") -> None:
    bound = bound or with_arguments(BOUND, bytes(amendment.arguments))
    sql(
        "UPDATE calls_call SET amendment_id = %s, statement = %s, call_digest = %s, seq = %s "
        "WHERE id = %s",
        amendment.pk,
        bound,
        digest or call_digest(bound),
        seq,
        amendment.call_id,
    )


def test_a_held_call_is_amended_with_its_entry(scout: Agent, alice: User) -> None:
    call = held(scout)

    assert amend_now(amending(call, alice, note="Ben is away.", private=True))

    now = Call.objects.get(pk=call.pk)
    entry = Entry.objects.get(call_id=call.pk, seq=2)
    assert (now.state, now.seq, now.to_send) == (State.HELD, 2, OTHER)
    # What was asked is as it was.
    assert bytes(now.arguments) == bytes(call.arguments)
    assert now.arguments_digest == call.arguments_digest
    assert now.call_digest == call_digest(with_arguments(BOUND, OTHER)) != call.call_digest
    assert (entry.action, entry.actor, entry.reason) == ("call.amended", "alice", "Ben is away.")
    assert (entry.from_state, entry.to_state) == ("held", "held")
    assert entry.arguments_digest == hashlib.sha256(OTHER).hexdigest()
    assert entry.details["was"] == call.call_digest


def test_later_entries_carry_the_digest_of_what_is_sent(scout: Agent, alice: User) -> None:
    call = held(scout)
    amend_now(amending(call, alice))

    for source, target in [("held", "denied")]:
        assert move_now(move(call.pk, State(source), State(target)))

    assert Entry.objects.get(call_id=call.pk, seq=3).arguments_digest == (
        hashlib.sha256(OTHER).hexdigest()
    )


def test_who_saw_something_else_amends_nothing(scout: Agent, alice: User) -> None:
    call = held(scout)

    assert amend_now(amending(call, alice))
    assert not amend_now(amending(call, alice, arguments=b"{}"))

    assert Amendment.objects.count() == 1
    assert Call.objects.get(pk=call.pk).to_send == OTHER


def test_an_amended_call_is_amended_again(scout: Agent, alice: User) -> None:
    call = held(scout)
    amend_now(amending(call, alice))
    again = Call.objects.get(pk=call.pk)

    assert amend_now(amending(again, alice, arguments=b"{}"))

    assert Call.objects.get(pk=call.pk).to_send == b"{}"
    assert [bytes(one.arguments) for one in Amendment.objects.all()] == [OTHER, b"{}"]


@pytest.mark.parametrize(
    "state", [State.REFUSED, State.QUEUED, State.RUNNING, State.DENIED, State.SUCCEEDED]
)
def test_only_held_calls_are_amended(scout: Agent, alice: User, state: State) -> None:
    call = Call.objects.get(pk=bring_to(scout, state))

    assert not amend_now(amending(call, alice))

    amendment = an_amendment(call.pk, alice, seq=call.seq + 1)
    an_entry(call.pk, call.seq + 1, from_state=state, to_state=state)
    with pytest.raises(DatabaseError, match="only by an amendment while the call is held"):
        point_to(amendment, seq=call.seq + 1)


def test_an_amendment_needs_its_entry(scout: Agent, alice: User) -> None:
    amendment = an_amendment(held(scout).pk, alice, seq=2)

    with pytest.raises(DatabaseError, match="a move without its entry"):
        point_to(amendment)


def test_an_entry_of_another_move_is_none_of_an_amendment(scout: Agent, alice: User) -> None:
    call = held(scout)
    amendment = an_amendment(call.pk, alice, seq=2)
    an_entry(call.pk, 2, action="call.approved", to_state="approved")

    with pytest.raises(DatabaseError, match="a move without its entry"):
        point_to(amendment)


def test_with_row_and_entry_it_is_the_legal_move(scout: Agent, alice: User) -> None:
    call = held(scout)
    amendment = an_amendment(call.pk, alice, seq=2)
    an_entry(call.pk, 2)

    point_to(amendment)

    assert Call.objects.get(pk=call.pk).to_send == OTHER


@pytest.mark.parametrize(
    "change",
    [
        "statement = '{}'",
        "call_digest = repeat('0', 64)",
        "amendment_id = {other}",
        "amendment_id = {mine}",
        "amendment_id = {mine}, seq = 2",
        "amendment_id = {other}, seq = 2, statement = '{bound}', call_digest = '{digest}'",
        "amendment_id = {mine}, seq = 3, statement = '{bound}', call_digest = '{digest}'",
        "amendment_id = {mine}, seq = 2, statement = '{bound}', call_digest = repeat('0', 64)",
        "amendment_id = {mine}, seq = 2, state = 'approved', "
        "statement = '{bound}', call_digest = '{digest}'",
        "amendment_id = NULL, seq = 2, statement = '{bound}', call_digest = '{digest}'",
        "seq = 2",
    ],
)
def test_nothing_short_of_an_amendment_changes_what_is_sent(
    scout: Agent, alice: User, change: str
) -> None:
    call = held(scout)
    mine = an_amendment(call.pk, alice, seq=2)
    other = an_amendment(opened(opening(scout, State.QUEUED)), alice, seq=2)
    an_entry(call.pk, 2)
    bound = with_arguments(BOUND, OTHER)
    values = {"mine": mine.pk, "other": other.pk, "bound": bound, "digest": call_digest(bound)}
    for name, value in values.items():
        change = change.replace(f"{{{name}}}", str(value))

    with pytest.raises(DatabaseError, match=r"only by an amendment|cannot move like this"):
        sql(f"UPDATE calls_call SET {change} WHERE id = %s", call.pk)


@pytest.mark.parametrize(
    "part",
    [
        {"agent": {"id": 9, "name": "other"}},
        {"server": {"name": "mailer", "transport": "http", "url": "http://evil/", "argv": []}},
        {"credential": "another"},
        {"tool": {"name": "delete", "exposed": "mailer.delete"}},
        {"definition": "e" * 64},
        {"arguments": "0" * 64},
    ],
)
def test_an_amendment_changes_nothing_but_arguments(
    scout: Agent, alice: User, part: dict[str, Any]
) -> None:
    call = held(scout)
    bound = orjson.dumps({**orjson.loads(with_arguments(BOUND, OTHER)), **part}).decode()
    amendment = an_amendment(call.pk, alice, seq=2)
    an_entry(call.pk, 2)

    with pytest.raises(DatabaseError, match="only by an amendment while the call is held"):
        point_to(amendment, bound=bound)


def test_bytes_that_are_not_those_of_the_digest_are_no_amendment(scout: Agent, alice: User) -> None:
    call = held(scout)
    bound = with_arguments(BOUND, OTHER)
    amendment = Amendment.objects.create(
        call_id=call.pk,
        seq=2,
        person=alice,
        arguments=b'{"to": "mallory@example.org"}',
        arguments_digest=hashlib.sha256(OTHER).hexdigest(),
        call_digest=call_digest(bound),
    )
    an_entry(call.pk, 2)

    with pytest.raises(DatabaseError, match="only by an amendment while the call is held"):
        point_to(amendment, bound=bound)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE calls_amendment SET arguments = 'x'",
        "UPDATE calls_amendment SET person_id = person_id + 1",
        "UPDATE calls_amendment SET private = true",
        "DELETE FROM calls_amendment",
        "TRUNCATE calls_amendment CASCADE",
    ],
)
def test_amendments_stay_as_they_were(scout: Agent, alice: User, statement: str) -> None:
    amend_now(amending(held(scout), alice))

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def bring_to(scout: Agent, state: State) -> UUID:
    """As test_states does, and bound to a statement."""
    ways: dict[State, list[State]] = {
        first: [first] for first in (State.REFUSED, State.HELD, State.QUEUED, State.RUNNING)
    }
    while state not in ways:
        for source, target in LEGAL:
            if source in ways and target not in ways:
                ways[target] = [*ways[source], target]
    first, *rest = ways[state]
    call_id = opened(opening(scout, first, id=uuid7()))
    for source, target in zip([first, *rest], rest, strict=False):
        assert move_now(move(call_id, source, target))
    return call_id
