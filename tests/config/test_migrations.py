"""One migration an app, and what becomes of databases that had the many before."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader

from tests.database import manage

REPLACED = sorted(
    name for one in MigrationLoader(None).disk_migrations.values() for name in one.replaces
)
MADE = "SELECT app, name FROM django_migrations"


@pytest.fixture
def before(fresh_database: dict[str, str]) -> Iterator[psycopg.Connection[Any]]:
    """As the last release with the many migrations left it."""
    with psycopg.connect(fresh_database["DATABASE_OWNER_URL"], autocommit=True) as link:
        link.execute("DELETE FROM django_migrations WHERE name = '0001_squashed'")
        with link.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())",
                REPLACED,
            )
        yield link


@pytest.mark.django_db
def test_every_change_of_a_model_has_its_migration() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


@pytest.mark.usefixtures("db")
def test_what_had_all_of_them_is_taken_over_as_it_is(
    before: psycopg.Connection[Any], fresh_database: dict[str, str]
) -> None:
    manage(["prepare", "--only-migrate"], env=fresh_database)
    made = set(before.execute(MADE).fetchall())
    assert {(app, "0001_squashed") for app, _ in REPLACED} <= made


@pytest.mark.usefixtures("db")
def test_what_lacks_some_is_told_what_to_do_first(
    before: psycopg.Connection[Any], fresh_database: dict[str, str]
) -> None:
    before.execute("DELETE FROM django_migrations WHERE (app, name) = ('audit', '0005_origins')")
    with pytest.raises(SystemExit, match="Start the last release that has them once"):
        manage(["prepare", "--only-migrate"], env=fresh_database)
    assert ("audit", "0001_squashed") not in before.execute(MADE).fetchall()
