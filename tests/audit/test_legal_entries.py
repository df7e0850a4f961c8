"""What nobody may add to the record, since nobody could remove it: each would break verification
or exports for good."""

import os
from typing import Any

import psycopg
import pytest

from audit.exporting import whole_record
from audit.live import check_live
from audit.services import SYSTEM, record
from tests.sealing import seal_all

pytestmark = pytest.mark.django_db(transaction=True)

NAME = """
    INSERT INTO audit_name (kind, subject, text, server, definition, salt, commitment)
    SELECT kind, subject, text, server, '', salt,
        audit_commitment(salt, kind, subject, text, server, '')
    FROM (VALUES (
        %(kind)s::text, %(subject)s::bigint, %(text)s::text, %(server)s::text,
        uuid_send(gen_random_uuid()))) AS given (kind, subject, text, server, salt)
    RETURNING id
"""
NOBODY = {"kind": "reason", "subject": None, "text": "A reason.", "server": ""}
ENTRY = "INSERT INTO audit_entryrow (action, actor, details) VALUES (1, 3, %s)"
SHARED = {"effect": "allow", "rule": "all"}


@pytest.fixture
def app() -> Any:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as link:
        yield link


def name(app: psycopg.Connection[Any], **given: object) -> int:
    (number,) = app.execute(NAME, {**NOBODY, **given}).fetchone() or (0,)
    return int(number)


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "context", "text": "no JSON"},
        {"kind": "context", "text": "[]"},
        {"kind": "context", "text": '{"effect": "allow", "effect": "deny"}'},
        {"kind": "context", "text": '{"note": "x"}'},
        {"kind": "context", "text": '{"rule": {"deep": [[]]}}'},
        {"kind": "context", "text": '{"rule": 1e5000}'},
        {"kind": "reason", "subject": 5},
        {"kind": "action", "subject": 5, "text": "note.made"},
        {"kind": "person", "subject": 5, "server": "mailer"},
        {"kind": "colour", "text": "red"},
    ],
)
def test_a_name_that_could_not_be_read_again_is_refused(
    app: psycopg.Connection[Any], given: dict[str, Any]
) -> None:
    with pytest.raises(psycopg.errors.RaiseException):
        name(app, **given)


@pytest.mark.parametrize(
    ("salt", "commitment"),
    [
        ("NULL", "sha256('x')"),
        ("'x'", "audit_commitment('x', 'reason', NULL, 'x', '', '')"),
        ("uuid_send(gen_random_uuid())", "sha256('x')"),
        ("uuid_send(gen_random_uuid())", "'x'"),
    ],
)
def test_a_name_is_what_it_is_sealed_by(
    app: psycopg.Connection[Any], salt: str, commitment: str
) -> None:
    """Without its salt it would be one that was forgotten, which no entry says."""
    with pytest.raises((psycopg.errors.RaiseException, psycopg.errors.CheckViolation)):
        app.execute(
            "INSERT INTO audit_name (kind, text, salt, commitment)"
            f" VALUES ('reason', 'x', {salt}, {commitment})"
        )


@pytest.mark.parametrize("column", ["action", "actor", "agent", "person", "tool", "reason"])
def test_an_entry_bears_names_of_the_right_kind_that_are_there(
    app: psycopg.Connection[Any], column: str
) -> None:
    other = name(app, kind="context", text='{"rule": "all"}')
    for number in (other, 123456):
        columns = {"action": 1, "actor": 3} | {column: number}
        with pytest.raises(psycopg.errors.RaiseException, match="an entry w"):
            app.execute(
                f"INSERT INTO audit_entryrow ({', '.join(columns)})"
                f" VALUES ({', '.join(map(str, columns.values()))})"
            )


DEEP = '{"a": ' + "[" * 2000 + "]" * 2000 + "}"


@pytest.mark.parametrize("details", ["[1]", '"text"', '{"a": 1e5000}', '{"a": -1e400}', DEEP])
def test_details_can_be_read_by_whoever_checks(app: psycopg.Connection[Any], details: str) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="details cannot be read"):
        app.execute(ENTRY, [details])


def test_details_do_not_say_what_the_context_says(app: psycopg.Connection[Any]) -> None:
    context = name(app, kind="context", text='{"effect": "allow", "rule": "all"}')
    with pytest.raises(psycopg.errors.RaiseException, match="say what its context says"):
        app.execute(
            "INSERT INTO audit_entryrow (action, actor, context, details)"
            ' VALUES (1, 3, %s, \'{"rule": "none"}\')',
            [context],
        )


@pytest.mark.parametrize("action", ["record.restored", "record.forgotten", "record.format"])
def test_only_the_owner_writes_what_the_record_says_of_itself(
    app: psycopg.Connection[Any], action: str
) -> None:
    entry = "INSERT INTO audit_entry (action, actor_kind, actor) VALUES (%s, 'system', 'x')"
    with pytest.raises(psycopg.errors.RaiseException, match="the record's own"):
        app.execute(entry, [action])
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        owner.execute(entry, [action])
        owner.rollback()


def test_whatever_else_is_added_verifies_and_is_exported() -> None:
    record("note.made", actor=SYSTEM, reason="A reason.", **SHARED, origin="mcp", size=1.5)
    record("note.made", actor=SYSTEM, text="x" * 10_000, nested={"a": [{"b": [1, -(10**200)]}]})
    seal_all()

    assert check_live().wrong == []
    assert len(list(whole_record())) >= 2
