"""Temporary tables named like ours: no function of the database may take them for ours."""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.database import Databases

# Our own functions: those of extensions are nobody's here to change.
FUNCTIONS = """
    SELECT p.oid, p.oid::regprocedure::text, p.prosrc, p.proconfig FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND NOT EXISTS (
        SELECT FROM pg_depend d
        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    ORDER BY 2
"""
# What a trigger is made of, without its condition: its function is to run.
TRIGGERS = """
    SELECT t.tgrelid::regclass::text, t.tgname, t.tgfoid::regproc::text,
           CASE WHEN t.tgtype & 2 > 0 THEN 'BEFORE' ELSE 'AFTER' END,
           CASE WHEN t.tgtype & 1 > 0 THEN 'ROW' ELSE 'STATEMENT' END,
           t.tgoldtable, t.tgnewtable, event
    FROM pg_trigger t CROSS JOIN LATERAL (VALUES
        (4, 'INSERT'), (8, 'DELETE'), (16, 'UPDATE'), (32, 'TRUNCATE')) AS e (bit, event)
    WHERE NOT t.tgisinternal AND t.tgtype & e.bit > 0
      AND t.tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
    ORDER BY 1, 2, 8
"""
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
# These stand for a name that a function took from the temporary schema.
MISTAKEN = (psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable)


@pytest.fixture
def admin(
    databases: Databases, fresh_database: dict[str, str]
) -> Iterator[psycopg.Connection[Any]]:
    with databases.superuser(fresh_database) as connection:
        yield connection


@pytest.fixture
def shadowed(
    admin: psycopg.Connection[Any], fresh_database: dict[str, str]
) -> Iterator[psycopg.Connection[Any]]:
    """The application's role, once more with the right that it is refused, behind shadows of all
    tables: they have no columns, so whoever takes one for ours fails."""
    info = admin.info
    with psycopg.connect(fresh_database["DATABASE_URL"], autocommit=True) as app:
        admin.execute(f"GRANT TEMPORARY ON DATABASE {info.dbname} TO {app.info.user}")
        for (table,) in admin.execute(TABLES).fetchall():
            app.execute(f"CREATE TEMPORARY TABLE {table} ()")
        app.execute("SET search_path = pg_temp, public")
        yield app


def test_the_application_makes_no_tables(fresh_database: dict[str, str]) -> None:
    for statement in (
        "CREATE TEMPORARY TABLE audit_entry (id bigint)",
        "CREATE TEMPORARY VIEW audit_entry AS SELECT 1",
        "CREATE TABLE public.more (id bigint)",
        "CREATE FUNCTION public.now() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE SCHEMA more",
    ):
        with (
            psycopg.connect(fresh_database["DATABASE_URL"]) as app,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            app.execute(statement)


@pytest.mark.long
def test_every_function_names_where_it_looks(shadowed: psycopg.Connection[Any]) -> None:
    """Each name of a table in each function, looked up as the function does."""
    tables = [table for (table,) in shadowed.execute(TABLES).fetchall()]
    functions = shadowed.execute(FUNCTIONS).fetchall()
    mistaken = []
    for _oid, name, source, config in functions:
        paths = [line.partition("=")[2] for line in config or () if line.startswith("search_path=")]
        with shadowed.transaction():
            if paths:
                shadowed.execute("SELECT set_config('search_path', %s, true)", paths)
            for table in tables:
                if re.search(rf"(?<![.\w]){table}\b", source):
                    seen = shadowed.execute("SELECT to_regclass(%s)::oid", [table]).fetchone()
                    ours = shadowed.execute(
                        "SELECT to_regclass(%s)::oid", [f"public.{table}"]
                    ).fetchone()
                    if seen != ours:
                        mistaken.append((name, table))
        if not paths:
            mistaken.append((name, "no search_path"))
    assert len(functions) > 40
    assert mistaken == []


@pytest.mark.long
def test_no_trigger_takes_a_temporary_table_for_ours(
    admin: psycopg.Connection[Any], shadowed: psycopg.Connection[Any]
) -> None:
    """Each trigger's function runs, on an empty copy of its table, behind the shadows."""
    triggers = admin.execute(TRIGGERS).fetchall()
    admin.execute("CREATE SCHEMA copy")
    admin.execute(f"GRANT USAGE ON SCHEMA copy TO {shadowed.info.user}")
    mistaken = []
    for table, name, function, when, level, old, new, event in triggers:
        columns = _copied(admin, table)
        transition = " ".join(
            f"{which} TABLE AS {given}" for which, given in (("OLD", old), ("NEW", new)) if given
        )
        admin.execute(
            f"CREATE TRIGGER tried {when} {event} ON copy.{table}"
            f"{' REFERENCING ' + transition if transition else ''}"
            f" FOR EACH {level} EXECUTE FUNCTION public.{function}()"
        )
        admin.execute(f"GRANT ALL ON copy.{table} TO {shadowed.info.user}")
        try:
            with shadowed.transaction():
                shadowed.execute(_firing(event, table, columns))
        except MISTAKEN as error:
            mistaken.append((table, name, event, str(error).splitlines()[0]))
        except psycopg.Error:
            pass  # it refused, which is its work
    assert len(triggers) > 50
    assert mistaken == []


def _copied(admin: psycopg.Connection[Any], table: str) -> list[str]:
    """An own copy of the table, with one row that has nothing; its columns."""
    admin.execute(f"DROP TABLE IF EXISTS copy.{table}")
    admin.execute(f"CREATE TABLE copy.{table} (LIKE public.{table})")
    rows = admin.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0",
        [f"copy.{table}"],
    ).fetchall()
    columns = [column for (column,) in rows]
    for column in columns:
        admin.execute(
            sql.SQL("ALTER TABLE {} ALTER {} DROP NOT NULL").format(
                sql.Identifier("copy", table), sql.Identifier(column)
            )
        )
    admin.execute(f"INSERT INTO copy.{table} DEFAULT VALUES")
    return columns


def _firing(event: str, table: str, columns: list[str]) -> str:
    return {
        "INSERT": f"INSERT INTO copy.{table} DEFAULT VALUES",
        "DELETE": f"DELETE FROM copy.{table}",
        "UPDATE": f'UPDATE copy.{table} SET "{columns[0]}" = "{columns[0]}"',
        "TRUNCATE": f"TRUNCATE copy.{table}",
    }[event]


def test_a_call_does_not_move_by_an_entry_of_a_temporary_table(
    admin: psycopg.Connection[Any], fresh_database: dict[str, str]
) -> None:
    """The attack that once worked: the record says nothing of the move."""
    # Nothing else stands there that the call would have to fit.
    admin.execute("SET session_replication_role = replica")
    columns = admin.execute(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute"
        " WHERE attrelid = 'calls_call'::regclass AND attnum > 0 AND attnotnull AND NOT atthasdef"
        " AND NOT attisdropped"
    ).fetchall()
    values = {name: _nothing(kind) for name, kind in columns} | {"seq": "1", "state": "'queued'"}
    admin.execute(
        f"INSERT INTO calls_call ({', '.join(values)}) VALUES ({', '.join(values.values())})"
    )
    with psycopg.connect(fresh_database["DATABASE_URL"]) as app:
        admin.execute(f"GRANT TEMPORARY ON DATABASE {admin.info.dbname} TO {app.info.user}")
        app.execute("CREATE TEMPORARY TABLE audit_entry AS TABLE public.audit_entry WITH NO DATA")
        app.execute(
            "INSERT INTO pg_temp.audit_entry (call_id, seq, from_state, to_state)"
            " SELECT id, 2, 'queued', 'cancelled' FROM public.calls_call"
        )
        with pytest.raises(psycopg.errors.RaiseException, match="a move without its entry"):
            app.execute("UPDATE public.calls_call SET state = 'cancelled', seq = 2")


def _nothing(kind: str) -> str:
    values = {"bytea": "''", "jsonb": "'{}'", "uuid": "gen_random_uuid()", "boolean": "false"}
    values |= {"timestamp with time zone": "now()", "interval": "'0'"}
    return values.get(kind, "''" if "char" in kind or kind == "text" else "0")
