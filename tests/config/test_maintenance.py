"""What is past its time is removed by a database role that may do this and nothing else."""

import os
from collections.abc import Mapping
from typing import LiteralString
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.database import Databases, manage

ROLE = "countersign_test_maintenance"
PASSWORD = "only for tests"
MAKE_ROLE = f"""
DO $$ BEGIN
IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
    CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}';
END IF;
END $$
"""


@pytest.fixture
def urls(databases: Databases, fresh_database: dict[str, str]) -> Mapping[str, str]:
    """A database whose grants know a maintenance role."""
    with databases.superuser(os.environ) as admin:
        admin.execute(MAKE_ROLE)
    url = make_conninfo(fresh_database["DATABASE_URL"], user=ROLE, password=PASSWORD)
    made = {**fresh_database, "DATABASE_MAINTENANCE_URL": url}
    manage(["grant_app_role"], env=made)
    return made


def result(url: str, *, kept: str) -> str:
    call_id = str(uuid4())
    with psycopg.connect(url) as app:
        app.execute(
            "INSERT INTO calls_result (call_id, kind, body, kept_until)"
            " VALUES (%s, 'result', '', clock_timestamp() + %s::interval)",
            [call_id, kept],
        )
        app.execute(
            "INSERT INTO calls_resultpart (call_id, number, body) VALUES (%s, 0, 'secret')",
            [call_id],
        )
    return call_id


def test_the_scheduled_command_removes_what_is_past_its_time(urls: Mapping[str, str]) -> None:
    result(urls["DATABASE_URL"], kept="-1 day")
    young = result(urls["DATABASE_URL"], kept="1 day")

    said = manage(["maintain"], env={"DATABASE_URL": urls["DATABASE_MAINTENANCE_URL"]})

    assert said == "Removed 1 large results that were past their time.\n"
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        left = owner.execute("SELECT call_id::text FROM calls_resultpart").fetchall()
        entries = owner.execute(
            "SELECT actor_kind, details->>'count' FROM audit_entry WHERE action = 'results.expired'"
        ).fetchall()
    assert left == [(young,)]
    assert entries == [("system", "1")]


MAY_NOT: list[tuple[str, LiteralString]] = [
    ("DATABASE_URL", "DELETE FROM calls_resultpart"),
    ("DATABASE_MAINTENANCE_URL", "SELECT body FROM calls_resultpart"),
    ("DATABASE_MAINTENANCE_URL", "DELETE FROM calls_result"),
    ("DATABASE_MAINTENANCE_URL", "SELECT id FROM calls_call"),
    ("DATABASE_MAINTENANCE_URL", "UPDATE calls_call SET state = 'queued'"),
    ("DATABASE_MAINTENANCE_URL", "DELETE FROM audit_entryrow"),
    ("DATABASE_MAINTENANCE_URL", "UPDATE audit_name SET text = ''"),
    ("DATABASE_MAINTENANCE_URL", "SELECT password FROM accounts_user"),
    ("DATABASE_MAINTENANCE_URL", "INSERT INTO approvals_vote DEFAULT VALUES"),
    ("DATABASE_MAINTENANCE_URL", "CREATE TABLE mine (a int)"),
]


def test_each_role_may_do_its_own_and_nothing_else(urls: Mapping[str, str]) -> None:
    for role, statement in MAY_NOT:
        with (
            psycopg.connect(urls[role]) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement)


def test_a_maintenance_role_that_is_not_there_is_named(fresh_database: dict[str, str]) -> None:
    url = make_conninfo(fresh_database["DATABASE_URL"], user="countersign_nobody")

    with pytest.raises(SystemExit, match="no database role countersign_nobody, which is to remove"):
        manage(["grant_app_role"], env={**fresh_database, "DATABASE_MAINTENANCE_URL": url})


def test_the_application_is_told_that_it_may_not(urls: Mapping[str, str]) -> None:
    with pytest.raises(SystemExit, match="give the maintenance role's URL"):
        manage(["maintain"], env={"DATABASE_URL": urls["DATABASE_URL"]})
