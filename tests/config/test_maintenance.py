"""What is past its time is removed by a database role that may do this and nothing else."""

import os
from collections.abc import Mapping
from typing import Any, LiteralString
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


def result(past: psycopg.Connection[Any], *, kept: str) -> str:
    """A large one, and one as received. `past`: the triggers, since no call brought it."""
    call_id = str(uuid4())
    with past.transaction():
        past.execute("SET LOCAL session_replication_role = replica")
        past.execute(
            "INSERT INTO calls_result (call_id, kind, body, kept_until)"
            " VALUES (%s, 'result', '', clock_timestamp() + %s::interval)",
            [call_id, kept],
        )
        past.execute(
            "INSERT INTO calls_resultpart (call_id, number, body) VALUES (%s, 0, 'secret')",
            [call_id],
        )
        past.execute(
            "INSERT INTO calls_receivedresult (call_id, sealed, kept_until)"
            " VALUES (%s, 'secret', clock_timestamp() + %s::interval)",
            [call_id, kept],
        )
    return call_id


@pytest.mark.long
def test_the_scheduled_command_removes_what_is_past_its_time(
    databases: Databases, urls: Mapping[str, str]
) -> None:
    with databases.superuser(urls) as past:
        result(past, kept="-1 day")
        young = result(past, kept="1 day")

    said = manage(["maintain"], env={"DATABASE_URL": urls["DATABASE_MAINTENANCE_URL"]})

    assert said == (
        "Removed 1 large results that were past their time.\n"
        "Removed 1 results as received, past their time.\n"
    )
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        left = [
            *owner.execute("SELECT call_id::text FROM calls_resultpart"),
            *owner.execute("SELECT call_id::text FROM calls_receivedresult"),
        ]
        entries = owner.execute(
            "SELECT action, actor_kind, details->>'count' FROM audit_entry"
            " WHERE action LIKE '%results.expired' ORDER BY id"
        ).fetchall()
    assert left == [(young,), (young,)]
    assert entries == [
        ("results.expired", "system", "1"),
        ("received_results.expired", "system", "1"),
    ]


@pytest.mark.long
def test_what_a_legal_hold_covers_stays(databases: Databases, urls: Mapping[str, str]) -> None:
    with databases.superuser(urls) as past:
        held = result(past, kept="-1 day")
        result(past, kept="-1 day")
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        owner.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor, reason, details) VALUES"
            " ('record.hold_placed', 'system', 'x', 'A case.', jsonb_build_object("
            "'kind', 'call', 'subjects', '[]'::jsonb, 'call', %s::text))",
            [held],
        )

    said = manage(["maintain"], env={"DATABASE_URL": urls["DATABASE_MAINTENANCE_URL"]})

    assert "Removed 1 large results" in said
    assert "Removed 1 results as received" in said
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        left = [
            *owner.execute("SELECT call_id::text FROM calls_resultpart"),
            *owner.execute("SELECT call_id::text FROM calls_receivedresult"),
        ]
    assert left == [(held,), (held,)]


# Days back, time, size, and whether it stays.
SIGNED = [
    (70, "01:00", 10, False),
    (70, "02:00", 20, False),
    (70, "23:30", 30, True),
    (69, "08:00", 40, True),
    (69, "09:00", 50, True),
    (8, "10:00", 60, False),
    (8, "10:20", 70, False),
    (8, "10:40", 80, True),
    (8, "11:00", 90, True),
    # Here the clock was set back.
    (7, "10:30", 95, True),
    (7, "10:10", 96, True),
    (7, "10:50", 97, True),
    (0, "00:00", 99, True),
    (0, "00:00", 99, True),
]


def sign(owner: psycopg.Connection[Any]) -> None:
    for days, time, size, _ in SIGNED:
        owner.execute(
            "INSERT INTO audit_checkpoint (size, root, note, at) VALUES (%s, '', '',"
            " date_trunc('day', clock_timestamp(), 'UTC') - make_interval(days => %s) + %s::time)",
            [size, days, time],
        )
    # From 40 on another key signs.
    owner.execute(
        "INSERT INTO audit_signer (public, first_size, from_secret) VALUES ('', 40, false)"
    )


@pytest.mark.long
def test_checkpoints_for_which_later_ones_stand_are_removed(urls: Mapping[str, str]) -> None:
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        sign(owner)

    said = manage(["maintain"], env={"DATABASE_URL": urls["DATABASE_MAINTENANCE_URL"]})

    left = "SELECT size FROM audit_checkpoint ORDER BY id"
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        sizes = [size for (size,) in owner.execute(left)]
    assert sizes == [size for *_, size, stays in SIGNED if stays]
    assert said == "Removed 4 checkpoints for which later ones stand.\n"


@pytest.mark.parametrize("role", ["DATABASE_MAINTENANCE_URL", "DATABASE_OWNER_URL"])
def test_no_other_checkpoint_goes(urls: Mapping[str, str], role: str) -> None:
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        sign(owner)

    for *_, size, stays in SIGNED:
        if stays:
            with psycopg.connect(urls[role]) as link, pytest.raises(psycopg.errors.RaiseException):
                link.execute("DELETE FROM audit_checkpoint WHERE size = %s", [size])


MAY_NOT: list[tuple[str, LiteralString]] = [
    ("DATABASE_URL", "DELETE FROM calls_resultpart"),
    ("DATABASE_URL", "DELETE FROM audit_checkpoint"),
    ("DATABASE_MAINTENANCE_URL", "UPDATE audit_checkpoint SET at = now()"),
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


@pytest.mark.long
def test_each_role_may_do_its_own_and_nothing_else(urls: Mapping[str, str]) -> None:
    for role, statement in MAY_NOT:
        with (
            psycopg.connect(urls[role]) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement)


@pytest.mark.long
def test_a_maintenance_role_that_is_not_there_is_named(fresh_database: dict[str, str]) -> None:
    url = make_conninfo(fresh_database["DATABASE_URL"], user="countersign_nobody")

    with pytest.raises(SystemExit, match="no database role countersign_nobody, which is to remove"):
        manage(["grant_app_role"], env={**fresh_database, "DATABASE_MAINTENANCE_URL": url})


@pytest.mark.long
def test_the_application_is_told_that_it_may_not(urls: Mapping[str, str]) -> None:
    with pytest.raises(SystemExit, match="give the maintenance role's URL"):
        manage(["maintain"], env={"DATABASE_URL": urls["DATABASE_URL"]})
