"""A call that is not what its entries say is found."""

import os
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.core.management import call_command

from accounts.models import Agent, User
from audit.models import Entry
from calls.record.states import State
from calls.record_checks import unrecorded
from tests.console import scenery
from tests.database import Databases
from tests.sealing import seal_all

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def ended(scout: Agent, olga: User) -> UUID:
    tool = scenery.server("mailer", olga, scenery.SEND).tools.get()
    made = scenery.call(scout, scenery.offered(scout, tool), scenery.MAIL, State.QUEUED)
    scenery.run(made)
    scenery.finish(made, {"content": []})
    return made


@pytest.fixture
def forger(ended: UUID, databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    with databases.superuser(os.environ) as link:
        link.execute("SET session_replication_role = replica")
        yield link


FORGED = [
    ("UPDATE calls_call SET state = 'failed'", "is failed after 3 moves, and its entries say"),
    ("UPDATE calls_call SET seq = 4", "is succeeded after 4 moves, and its entries say"),
    ("DELETE FROM calls_call", "is gone: its entries are still there"),
    ("DELETE FROM audit_entryrow WHERE seq = 2", "made 3 moves, and 2 of them have an entry"),
    ("DELETE FROM audit_entryrow WHERE seq IS NOT NULL", "is of no move that has an entry"),
    ("UPDATE calls_call SET arguments = '{}'", "The arguments of call"),
    ("UPDATE calls_call SET arguments_digest = repeat('0', 64)", "The arguments of call"),
    ("UPDATE calls_result SET body = '{}'", "The result of call"),
    ("DELETE FROM calls_result", "The result of call"),
    ("UPDATE calls_call SET result_digest = repeat('0', 64)", "The digest of the result of call"),
    ("UPDATE calls_call SET result_digest = ''", "The digest of the result of call"),
    ("UPDATE calls_call SET agent_id = agent_id + 1", "Agent, person or tool of call"),
    ("UPDATE calls_call SET person_id = person_id + 1", "Agent, person or tool of call"),
    ("UPDATE calls_call SET tool_name = 'mailer.add'", "Agent, person or tool of call"),
    (
        "INSERT INTO calls_amendment (call_id, seq, person_id, arguments, arguments_digest,"
        " call_digest, note, private, at) SELECT id, 2, person_id, '{}', '', '', '', false, now()"
        " FROM calls_call",
        "was changed to are not those of its entry",
    ),
]


@pytest.mark.parametrize(("forgery", "said"), FORGED)
def test_a_call_that_was_changed_past_its_entries_is_found(
    ended: UUID, forger: psycopg.Connection[Any], forgery: str, said: str
) -> None:
    assert unrecorded() == []
    newest = Entry.objects.latest("id").pk

    forger.execute(forgery)

    (sentence,) = unrecorded()
    assert said in sentence
    assert str(ended) in sentence
    # Of what is newer alone: nothing of this call.
    assert unrecorded(newest + 1) == []


def test_a_result_of_a_call_to_which_none_came_is_found(
    scout: Agent, olga: User, forger: psycopg.Connection[Any]
) -> None:
    tool = scenery.server("printer", olga, scenery.ADD).tools.get()
    denied = scenery.call(scout, scenery.offered(scout, tool), {"a": 1, "b": 2}, State.REFUSED)

    for nobody in (denied, UUID(int=7)):
        forger.execute(
            "INSERT INTO calls_result (call_id, kind, body) VALUES (%s, 'result', '{}')", [nobody]
        )

    assert unrecorded() == [
        f"The result of call {nobody} is of no move that has an entry."
        for nobody in (UUID(int=7), denied)
    ]


def test_the_command_says_it(
    ended: UUID, forger: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    seal_all()
    call_command("audit_verify")
    forger.execute("UPDATE calls_call SET arguments = '{}'")

    with pytest.raises(SystemExit):
        call_command("audit_verify")

    assert f"The arguments of call {ended} are not those" in capsys.readouterr().err


def test_a_large_result_is_compared_in_its_parts_as_long_as_it_is_kept(
    ended: UUID, forger: psycopg.Connection[Any]
) -> None:
    forger.execute(
        "INSERT INTO calls_resultpart (call_id, number, body)"
        " SELECT call_id, n, substring(body FROM n * 4 + 1 FOR 4)"
        " FROM calls_result, generate_series(0, 9) n"
    )
    forger.execute("UPDATE calls_result SET body = '', kept_until = now()")
    assert unrecorded() == []

    forger.execute("UPDATE calls_resultpart SET body = 'x' WHERE number = 1")
    assert unrecorded() == [f"The result of call {ended} is not that of its entry."]
    forger.execute("DELETE FROM calls_resultpart")
    assert unrecorded() == []
