"""Calls and their results stand in a partition a month; each is guarded as its table is."""

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from core.ids import first_id
from tests.config.test_maintenance import MAKE_ROLE, PASSWORD, ROLE
from tests.database import Databases, manage

PARTITIONS = """
    SELECT i.inhparent::regclass::text, c.relname::text,
        substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \\(''([^'']*)')
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    JOIN pg_partitioned_table p ON p.partrelid = i.inhparent
    WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1, 2
"""
KEYS = {"calls_call": "id", "calls_result": "call_id"}
# Of partitions without a lower bound.
AT = {"first": first_id(datetime(2020, 1, 1, tzinfo=UTC))}
LATER = first_id(datetime(2100, 1, 1, tzinfo=UTC))
STATEMENTS = {
    "INSERT": "INSERT INTO {part} SELECT (jsonb_populate_record(p, jsonb_build_object('{key}',"
    " overlay({key}::text PLACING '7' FROM 36)))).* FROM {part} p",
    "UPDATE": "UPDATE {part} SET {key} = {key}, {column} = 'x'",
    "DELETE": "DELETE FROM {part}",
    "TRUNCATE": "TRUNCATE {part}",
}
COLUMN = {"calls_call": "tool_name", "calls_result": "kind"}
# What the table itself lets its owner do.
FREE = {("calls_result", "DELETE")}


@pytest.fixture
def urls(databases: Databases, fresh_database: dict[str, str], tmp_path: Path) -> Mapping[str, str]:
    """A database whose grants know a maintenance role."""
    with databases.superuser(os.environ) as admin:
        admin.execute(MAKE_ROLE)
    url = make_conninfo(fresh_database["DATABASE_URL"], user=ROLE, password=PASSWORD)
    key = {"COUNTERSIGN_SEAL_KEY_FILE": str(tmp_path / "key")}
    made = {**fresh_database, **key, "DATABASE_MAINTENANCE_URL": url}
    manage(["grant_app_role"], env=made)
    return made


@pytest.fixture
def past(databases: Databases, urls: Mapping[str, str]) -> Iterator[psycopg.Connection[Any]]:
    """Past every trigger and right."""
    with databases.superuser(urls) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


def partitions(link: psycopg.Connection[Any]) -> list[tuple[str, str, str | None]]:
    return link.execute(PARTITIONS).fetchall()


def fill(past: psycopg.Connection[Any], table: str, key: object) -> None:
    """A row in which everything that must be there is nothing."""
    columns = past.execute(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid = %s::regclass"
        " AND attnum > 0 AND attnotnull AND NOT atthasdef AND NOT attisdropped AND attname <> %s",
        [table, KEYS[table]],
    ).fetchall()
    values = {KEYS[table]: sql.Literal(str(key))} | {
        name: sql.SQL("'2026-01-01'" if "time" in kind else "''" if _is_text(kind) else "0")
        for name, kind in columns
    }
    past.execute(
        sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join(values.values()),
        )
    )


def _is_text(kind: str) -> bool:
    return kind in ("text", "bytea") or kind.startswith("character")


@pytest.mark.long
def test_each_partition_is_closed_to_everybody_but_by_way_of_its_table(
    databases: Databases, urls: Mapping[str, str], past: psycopg.Connection[Any]
) -> None:
    found = partitions(past)
    for table, name, low in found:
        fill(past, table, low or (LATER if name.endswith("_later") else AT["first"]))
    assert {table for table, *_ in found} == set(KEYS)
    assert len(found) >= 2 * 5
    allowed = []
    others = [urls["DATABASE_URL"], urls["DATABASE_MAINTENANCE_URL"], databases.seal_url(urls)]
    for table, name, _low in found:
        assert past.execute(f"SELECT count(*) FROM ONLY {name}").fetchone() == (1,)
        for command, statement in STATEMENTS.items():
            asked = statement.format(part=name, key=KEYS[table], column=COLUMN[table])
            for url in others:
                with (
                    psycopg.connect(url) as link,
                    pytest.raises(psycopg.errors.InsufficientPrivilege),
                ):
                    link.execute(asked)
            with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
                try:
                    owner.execute(asked)
                except psycopg.errors.RaiseException:
                    pass
                else:
                    allowed.append((table, command))
                owner.rollback()
    assert set(allowed) == FREE


Verify = Callable[[Mapping[str, str]], str]


@pytest.fixture
def verify(databases: Databases) -> Verify:
    """Seals what waits, and says what `audit_verify` does."""

    def verify(urls: Mapping[str, str]) -> str:
        manage(["audit_seal"], env={**urls, "DATABASE_URL": databases.seal_url(urls)})
        try:
            return manage(["audit_verify"], env=urls)
        except SystemExit as failed:
            return f"Failed: {failed}"

    return verify


OPENED = (
    ("DROP TRIGGER {trigger} ON {part}", "Partition {part} lacks the trigger {trigger}"),
    (
        "ALTER TABLE {part} DISABLE TRIGGER {trigger}",
        "Partition {part} lacks the trigger {trigger}",
    ),
    ("GRANT UPDATE (tool_name) ON {part} TO {role}", "Partition {part} can be reached"),
    ("ALTER TABLE calls_call DISABLE TRIGGER {trigger}", "of calls_call is gone or off"),
)


@pytest.mark.long
def test_verification_names_what_is_not_guarded(urls: Mapping[str, str], verify: Verify) -> None:
    """Each at a trigger or partition of its own, so that it has to be named."""
    expected = []
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        part = partitions(owner)[1][1]
        triggers = owner.execute(
            "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal"
            " ORDER BY tgname ~ 'legal_move' DESC, tgname",
            [part],
        ).fetchall()
        assert len(triggers) >= 2
        role = psycopg.conninfo.conninfo_to_dict(urls["DATABASE_URL"])["user"]
        for at, (opened, named) in enumerate(OPENED):
            names = {"part": part, "trigger": triggers[0 if at in (0, 3) else 1][0], "role": role}
            owner.execute(opened.format(**names))
            expected.append(named.format(**names))

    said = verify(urls)

    assert said.startswith("Failed")
    assert [named for named in expected if named not in said] == []
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        told = owner.execute(
            "SELECT reason FROM audit_entry WHERE action = 'audit.verification_failed'"
        ).fetchall()
    assert [reason in said for (reason,) in told] == [True]


def unmake(owner: psycopg.Connection[Any]) -> list[str]:
    """As if nobody had made a month for long."""
    months = [name for _, name, low in partitions(owner) if low]
    for name in months:
        owner.execute(f"DROP TABLE {name}")
    return months


@pytest.mark.long
def test_the_scheduled_command_makes_the_next_months(
    urls: Mapping[str, str], verify: Verify
) -> None:
    maintenance = {"DATABASE_URL": urls["DATABASE_MAINTENANCE_URL"]}
    # The template may be of the month before.
    manage(["maintain"], env=maintenance)
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        months = unmake(owner)

    said = manage(["maintain"], env=maintenance)

    assert said == f"Made partitions: {', '.join(months)}.\n"
    assert manage(["maintain"], env=maintenance) == ""
    assert "entries hold" in verify(urls)


@pytest.mark.long
def test_where_others_hold_a_table_the_next_run_makes_them(urls: Mapping[str, str]) -> None:
    maintenance = {"DATABASE_URL": urls["DATABASE_MAINTENANCE_URL"]}
    with psycopg.connect(urls["DATABASE_OWNER_URL"], autocommit=True) as owner:
        months = [name for name in unmake(owner) if name.startswith("calls_call")]
        with owner.transaction():
            owner.execute("LOCK TABLE calls_call IN ACCESS SHARE MODE")
            owner.execute("SELECT pg_advisory_xact_lock(71003, 0)")
            with pytest.raises(SystemExit, match="No partitions were made: others hold a table"):
                manage(["maintain"], env=maintenance)

    assert months[0] in manage(["maintain"], env=maintenance)


@pytest.mark.long
def test_a_row_without_a_month_is_taken_and_gets_one(
    urls: Mapping[str, str], past: psycopg.Connection[Any], verify: Verify
) -> None:
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        lows = {name: low for _, name, low in partitions(owner)}
        _first, second = [name for name in unmake(owner) if name.startswith("calls_call")][:2]
    fill(past, "calls_call", lows[second])
    said = verify(urls)
    assert "calls_call has partitions until" in said
    assert "for which no partition was made" in said

    manage(["maintain"], env={"DATABASE_URL": urls["DATABASE_MAINTENANCE_URL"]})

    where = "SELECT tableoid::regclass::text FROM calls_call"
    # One for both months: the row stays in the file in which it is.
    assert past.execute(where).fetchall() == [(_first,)]
    assert "partition" not in verify(urls)


@pytest.mark.long
def test_only_maintenance_makes_months(urls: Mapping[str, str]) -> None:
    with (
        psycopg.connect(urls["DATABASE_URL"]) as app,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        app.execute("SELECT core_make_months()")
