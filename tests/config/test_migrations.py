"""One migration an app, and what becomes of databases that had the many before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader

from tests.config.conftest import Manage
from tests.database import manage
from tests.mostly_long import mostly_long

# Every migration that there was before, as an installation's table has them: also those that were
# joined once before, whose names stayed there.
EARLIER = [
    tuple(line.split("."))
    for line in Path(__file__).with_name("joined_migrations.txt").read_text().splitlines()
]
APPS = {app for app, _ in EARLIER}
MADE = "SELECT app, name FROM django_migrations"
FORGET = "DELETE FROM django_migrations WHERE (app, name) = (%s, %s)"
# What tells a table from one that was made anew in its place.
# Of approvals.0002_break_glass_during_stops, 0003_delegates_deny and 0007_one_vote_of_two, and
# calls.0003_invalid_requests.
REPLACED = {
    "pgtrigger_legal_break_glass_4a162",
    "pgtrigger_legal_vote_f722e",
    "approvals_bound",
    "pgtrigger_legal_birth_a1c0e",
}
# Of accounts.0003_token_scope, notifications.0003_begun_delegations and
# audit.0004_exports_in_background.
ADDED = {
    "pgtrigger_keep_scope_01ac9",
    "notifications_begundelegation",
    "audit_exportpart",
    "audit_exportpart_id_seq",
}
EXPORT_COLUMNS = (
    *("bytes", "changed", "checkpoint", "claim", "expires_at"),
    *("fault", "leased_until", "snapshot", "state"),
)
TABLES = """
    SELECT oid, relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i'
    UNION SELECT oid, proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION SELECT oid, tgname FROM pg_trigger WHERE NOT tgisinternal
      AND tgrelid NOT IN (SELECT inhrelid FROM pg_inherits)
"""


@pytest.fixture
def before(fresh_database: dict[str, str]) -> Iterator[psycopg.Connection[Any]]:
    """As the last release with the many migrations left it."""
    with psycopg.connect(fresh_database["DATABASE_OWNER_URL"], autocommit=True) as link:
        leave_as_before(link)
        yield link


def leave_as_before(link: psycopg.Connection[Any]) -> None:
    # Later migrations had not been.
    link.execute("ALTER INDEX audit_entry_action_at RENAME TO audit_entry_action")
    link.execute("ALTER TABLE accounts_authorizationcode DROP COLUMN page")
    scope = "DROP COLUMN last_address, DROP COLUMN toolsets CASCADE, DROP COLUMN reads_only CASCADE"
    link.execute(f"ALTER TABLE accounts_agenttoken {scope}")
    link.execute("ALTER INDEX audit_entry_own_reason RENAME TO audit_entry_reason")
    link.execute("ALTER TABLE registry_serverorigin DROP COLUMN signature")
    link.execute("ALTER TABLE accounts_agent DROP COLUMN team_id")
    owned = "DROP COLUMN team_id, DROP COLUMN agent_id"
    one = "ADD CONSTRAINT registry_one_credential UNIQUE NULLS NOT DISTINCT (server_id, person_id)"
    link.execute(f"ALTER TABLE registry_servercredential {owned}, {one}")
    link.execute("DROP INDEX accounts_client_once_an_agent")
    link.execute(
        "CREATE UNIQUE INDEX accounts_one_agent_a_client ON accounts_agenttoken (issuer, client_id)"
        " WHERE resource = '' AND revoked_at IS NULL AND issuer <> ''"
    )
    link.execute("DROP TABLE notifications_begundelegation")
    link.execute("DROP TABLE audit_exportpart")
    for column in EXPORT_COLUMNS:
        link.execute(f"ALTER TABLE audit_export DROP COLUMN {column}")
    link.execute("DROP INDEX notifications_asked, notifications_asked_on")
    link.execute("DELETE FROM django_migrations WHERE app = ANY(%s)", [list(APPS)])
    with link.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())", EARLIER
        )


def joined() -> set[tuple[str, str]]:
    return {key for key in MigrationLoader(None).disk_migrations if key[0] in APPS}


@pytest.mark.django_db
def test_makemigrations_finds_no_change_of_a_model() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


@pytest.mark.long
@pytest.mark.usefixtures("db")
def test_what_had_all_of_them_is_taken_over_as_it_is(
    before: psycopg.Connection[Any], fresh_database: dict[str, str]
) -> None:
    tables = before.execute(TABLES).fetchall()

    manage(["prepare", "--only-migrate"], env=fresh_database)

    assert joined() <= set(before.execute(MADE).fetchall())
    after = before.execute(TABLES).fetchall()
    assert {name for _id, name in after} - {name for _id, name in tables} <= ADDED
    assert {name for _id, name in tables} <= {name for _id, name in after}
    # Migrations that came after them make a trigger anew.
    assert {name for _id, name in set(after) ^ set(tables)} <= REPLACED | ADDED


@pytest.mark.long
@pytest.mark.usefixtures("db")
@pytest.mark.parametrize(
    "missing",
    mostly_long(
        [("audit", "0005_origins"), ("registry", "0026_server_origins"), EARLIER[-1]], EARLIER[-1]
    ),
)
def test_what_lacks_some_is_told_what_to_do_first(
    before: psycopg.Connection[Any], fresh_database: dict[str, str], missing: tuple[str, str]
) -> None:
    assert before.execute(FORGET, missing).rowcount == 1
    made = before.execute(MADE).fetchall()

    with pytest.raises(SystemExit, match="Start the last release that has them once") as told:
        manage(["prepare", "--only-migrate"], env=fresh_database)

    assert ".".join(missing) in str(told.value)
    assert before.execute(MADE).fetchall() == made


@pytest.mark.long
def test_a_backup_that_had_all_of_them_is_restored_and_one_that_lacks_some_is_not(
    manage: Manage, urls: dict[str, str], tmp_path: Path
) -> None:
    whole, lacking = tmp_path / "whole.tar", tmp_path / "lacking.tar"
    with psycopg.connect(urls["DATABASE_OWNER_URL"], autocommit=True) as link:
        leave_as_before(link)
        assert manage("backup", str(whole)).returncode == 0
        link.execute(FORGET, ("calls", "0019_holds_by_index"))
        assert manage("backup", str(lacking)).returncode == 0
    manage("pause")

    blocked = manage("restore", str(lacking), "--without-anchor", "--without-ledger")
    done = manage("restore", str(whole), "--without-anchor", "--without-ledger")

    assert blocked.returncode == 1
    assert "lacks some of them (calls.0019_holds_by_index)" in blocked.stderr
    assert done.returncode == 0, done.stderr
