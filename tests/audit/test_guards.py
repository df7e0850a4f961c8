"""What the database holds everybody to is as this release has it, or `audit_verify` names it."""

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from core import guards
from tests.database import Databases

pytestmark = pytest.mark.django_db(transaction=True)

FUNCTION = """
    SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc p
    JOIN pg_trigger t ON t.tgfoid = p.oid
    WHERE t.tgrelid = 'audit_batch'::regclass AND t.tgname LIKE 'pgtrigger_no_delete%'
"""


@pytest.fixture
def owner(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    with databases.superuser(os.environ) as link:
        yield link


def said(capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        call_command("audit_verify")
    return capsys.readouterr().err


def test_the_file_says_what_migrations_make() -> None:
    """After a change of triggers: python -m tests.guards"""
    assert guards.differing() == []


def test_a_trigger_that_does_nothing_any_more_is_named(
    owner: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    name, made = owner.execute(FUNCTION).fetchall()[0]
    nothing = f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
    owner.execute(f"{nothing} 'BEGIN RETURN OLD; END'")
    try:
        found = said(capsys)
    finally:
        owner.execute(made)

    assert f"The function {name}() is not as this release has it" in found
    call_command("audit_verify")


def test_a_trigger_that_looks_away_is_named(
    owner: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    name, made = owner.execute(
        "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger"
        " WHERE tgrelid = 'audit_secret'::regclass AND tgname LIKE 'pgtrigger_no_update%'"
    ).fetchall()[0]
    owner.execute(f"DROP TRIGGER {name} ON audit_secret")
    owner.execute(made.replace("EXECUTE", "WHEN (pg_backend_pid() = 0) EXECUTE"))
    try:
        found = said(capsys)
    finally:
        owner.execute(f"DROP TRIGGER {name} ON audit_secret")
        owner.execute(made)

    assert "The trigger no_update of audit_secret is not as this release has it" in found
    call_command("audit_verify")


def test_a_trigger_of_somebodys_own_is_named(
    owner: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a row is written it can leave it out, or write another."""
    owner.execute(
        "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    )
    owner.execute(
        "CREATE TRIGGER lose BEFORE INSERT ON audit_batch FOR EACH ROW EXECUTE FUNCTION lose()"
    )
    try:
        found = said(capsys)
    finally:
        owner.execute("DROP FUNCTION lose() CASCADE")

    assert "The trigger lose of audit_batch is not of this release" in found


def test_a_check_that_is_gone_is_named(
    owner: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    name, made = owner.execute(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = 'calls_freeze'::regclass AND conname = 'calls_freeze_one_thing'"
    ).fetchall()[0]
    owner.execute(f"ALTER TABLE calls_freeze DROP CONSTRAINT {name}")
    try:
        found = said(capsys)
    finally:
        owner.execute(f"ALTER TABLE calls_freeze ADD CONSTRAINT {name} {made}")

    assert f"The check {name} of calls_freeze is gone or off" in found
    call_command("audit_verify")
