"""A migrated template database, and clones of it."""

import hashlib
import hmac
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import LiteralString
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config.fingerprint import schema_fingerprint
from config.management.commands.grant_app_role import DATABASE_RIGHTS

ROOT = Path(__file__).resolve().parent.parent
ROLES = ROOT / "accounts" / "roles.py"
OWNER, APP = "countersign_test_owner", "countersign_test_app"
SEAL = "countersign_test_seal"


# In one process, which reads the product's code once.
MIGRATED = """
import django
from django.core.management import call_command
django.setup()
call_command("migrate", database="owner", interactive=False, verbosity=0)
call_command("grant_app_role")
call_command("ensure_roles")
"""


class Databases:
    """Databases for tests on one PostgreSQL server, where `admin` is a superuser's URL."""

    def __init__(self, admin: str) -> None:
        self.admin = {key: str(value) for key, value in conninfo_to_dict(admin).items()}
        self.template = f"countersign_template_{schema_fingerprint()}_{_fingerprint(ROLES)}"
        with self._connect() as connection:
            self._check_superuser(connection)
            # Runs that share a server take turns; with those of another schema, for the roles only.
            with _locked(connection, "countersign tests"):
                self._make_roles(connection)
            with _locked(connection, self.template):
                if not _exists(connection, self.template):
                    self._make_template(connection)

    def clone(self) -> dict[str, str]:
        """A new migrated database: its URLs, as the environment names them."""
        name = f"countersign_test_{os.getpid()}_{secrets.token_hex(4)}"
        with self._connect() as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(
                    *map(sql.Identifier, (name, self.template, OWNER))
                )
            )
        with self._connect(name) as connection:
            rights = {"database": sql.Identifier(name), "role": sql.Identifier(APP)}
            connection.execute(sql.SQL(DATABASE_RIGHTS).format(**rights))
        return self._urls(name)

    def empty(self) -> dict[str, str]:
        """A new one without anything in it, to migrate step by step."""
        name = f"countersign_test_{os.getpid()}_{secrets.token_hex(4)}"
        names = {"database": sql.Identifier(name), "owner": sql.Identifier(OWNER)}
        with self._connect() as connection:
            made = "CREATE DATABASE {database} TEMPLATE template0 OWNER {owner}"
            connection.execute(sql.SQL(made).format(**names))
        return self._urls(name)

    def drop(self, urls: Mapping[str, str]) -> None:
        name = sql.Identifier(str(conninfo_to_dict(urls["DATABASE_URL"])["dbname"]))
        with self._connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    def tidy(self) -> None:
        """Remove what runs before left: for a server that is ours alone."""
        with self._connect() as connection:
            found = connection.execute(
                r"SELECT datname FROM pg_database WHERE datname LIKE 'countersign\_%%'"
                " AND datname <> %s",
                [self.template],
            ).fetchall()
            for (name,) in found:
                connection.execute(
                    sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
                )

    def seal_url(self, urls: Mapping[str, str]) -> str:
        return self._url(SEAL, str(conninfo_to_dict(urls["DATABASE_URL"])["dbname"]))

    def superuser(self, urls: Mapping[str, str]) -> psycopg.Connection:
        """Beside the application's role and the owner: may do what no trigger allows."""
        return self._connect(str(conninfo_to_dict(urls["DATABASE_URL"])["dbname"]))

    def _connect(self, database: str | None = None) -> psycopg.Connection:
        name = database or self.admin.get("dbname") or "postgres"
        return psycopg.connect(make_conninfo(**{**self.admin, "dbname": name}), autocommit=True)

    def _check_superuser(self, connection: psycopg.Connection) -> None:
        row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        if row.fetchone() != (True,):
            raise SystemExit(
                f"DATABASE_URL: {self.admin.get('user')} is no superuser. The tests make roles and "
                "databases; give a superuser's URL, or none to use the embedded PostgreSQL."
            )

    def _make_roles(self, connection: psycopg.Connection) -> None:
        for role in (APP, OWNER, SEAL):
            if not _exists(connection, role, table="pg_roles", column="rolname"):
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                        sql.Identifier(role), sql.Literal(self._password(role))
                    )
                )
        # Tests seal what their own transaction wrote (tests/sealing.py). Nothing is inherited, so
        # that the application's role can do by itself what it can in an installation.
        connection.execute(f"GRANT {SEAL} TO {APP} WITH INHERIT FALSE, SET TRUE")

    def _make_template(self, connection: psycopg.Connection) -> None:
        # Migrated under another name: what is called a template is complete.
        draft = f"{self.template}_draft"
        names = {"draft": sql.Identifier(draft), "template": sql.Identifier(self.template)}
        names["owner"] = sql.Identifier(OWNER)
        for statement in (
            "DROP DATABASE IF EXISTS {draft}",
            "CREATE DATABASE {draft} OWNER {owner}",
        ):
            connection.execute(sql.SQL(statement).format(**names))
        # Roles as every installation has them. That they were made stands in no test's record.
        python("-c", MIGRATED, env=self._urls(draft))
        with self._connect(draft) as past:
            past.execute("SET session_replication_role = replica; DELETE FROM audit_entryrow")
        connection.execute(sql.SQL("ALTER DATABASE {draft} RENAME TO {template}").format(**names))

    def _urls(self, database: str) -> dict[str, str]:
        return {
            "DATABASE_URL": self._url(APP, database),
            "DATABASE_OWNER_URL": self._url(OWNER, database),
            "COUNTERSIGN_SEAL_ROLE": SEAL,
        }

    def _url(self, role: str, database: str) -> str:
        host = quote(self.admin.get("host", ""), safe="")
        port = self.admin.get("port", "5432")
        return f"postgresql://{role}:{self._password(role)}@/{database}?host={host}&port={port}"

    def _password(self, role: str) -> str:
        # The same in every run on this server, since the roles stay.
        secret = self.admin.get("password", "").encode()
        return hmac.new(secret, role.encode(), hashlib.sha256).hexdigest()


# Each takes a second to be noticed.
DEADLOCKS = 4


class Cleaner:
    """Puts a database back to what its template holds, past triggers and rights, as no role of the
    product could. Faster than a new clone, and processes stay connected."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        connection.execute("SET session_replication_role = replica")
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1"
        ).fetchall()
        self.tables = [name for (name,) in tables if name not in KEPT]
        self.filled = [name for name in self.tables if self._has_rows(sql.Identifier(name))]
        for name in self.filled:
            connection.execute(_named("CREATE TEMPORARY TABLE {kept} AS TABLE public.{name}", name))
        connection.execute(self._function())

        self._furnished: dict[str, str] = {}

    def clean(self) -> None:
        """Processes stay connected, and one may be writing what its last test left to it."""
        for _ in range(DEADLOCKS):
            with suppress(psycopg.errors.DeadlockDetected):
                self.connection.execute("SELECT pg_temp.clean()")
                return
        self.connection.execute("SELECT pg_temp.clean()")

    def reclaim(self) -> None:
        """Clean, and give the room of deleted rows back: what has no rows is small to the planner,
        too, as in a new database."""
        self.clean()
        self.connection.execute("VACUUM ANALYZE")

    def knows(self, name: str) -> bool:
        return name in self._furnished

    @contextmanager
    def keeping(self, name: str) -> Iterator[None]:
        """What is made within, but for the record, `furnish` puts back."""
        tables = [table for table in self.tables if not table.startswith("audit_")]
        number = len(self._furnished)
        kept = [_kept(table, f"furnished_{number}", self._columns(table)) for table in tables]
        for names in kept:
            self.connection.execute(sql.SQL(BEFORE).format(**names))
        yield
        for names in kept:
            self.connection.execute(sql.SQL(ADDED).format(**names))
        added = [names for names in kept if self._has_rows(names["kept"])]
        steps = sql.SQL("\n").join(sql.SQL(PUT_BACK).format(**names) for names in added)
        function = f"furnish_{number}"
        made = sql.SQL(FURNISH).format(function=sql.Identifier(function), steps=steps)
        self.connection.execute(made)
        self._furnished[name] = function

    def furnish(self, name: str) -> None:
        function = sql.Identifier("pg_temp", self._furnished[name])
        self.connection.execute(sql.SQL("SELECT {}()").format(function))

    def _columns(self, table: str) -> sql.Composable:
        """But for those that the database computes."""
        rows = self.connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position",
            [table],
        )
        return sql.SQL(", ").join(sql.Identifier(column) for (column,) in rows)

    def _function(self) -> sql.Composed:
        """In the database, where it is one question, and planned once."""
        emptied = [name for name in self.tables if name not in self.filled]
        steps = [_named("DELETE FROM public.{name};", name) for name in emptied]
        steps += [_named(REFILL, name) for name in self.filled]
        return sql.SQL(CLEAN).format(steps=sql.SQL("\n").join(steps))

    def _has_rows(self, table: sql.Composable) -> bool:
        query = sql.SQL("SELECT EXISTS (SELECT FROM {})").format(table)
        return self.connection.execute(query).fetchone() == (True,)


def _kept(table: str, prefix: str, columns: sql.Composable) -> dict[str, sql.Composable]:
    names = {"name": table, "kept": f"{prefix}_{table}", "before": f"{prefix}_{table}_before"}
    return {"columns": columns, **{key: sql.Identifier(one) for key, one in names.items()}}


def _named(statement: LiteralString, table: str) -> sql.Composed:
    names = {"name": sql.Identifier(table), "kept": sql.Identifier(f"kept_{table}")}
    return sql.SQL(statement).format(**names)


# What processes hold in memory is stale then; the last lines tell them as a change would.
CLEAN: LiteralString = """
CREATE FUNCTION pg_temp.clean() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
{steps}
UPDATE core_generation SET n = n + 1;
NOTIFY countersign_changed;
END
$$
"""
REFILL: LiteralString = """
IF EXISTS (
  (TABLE public.{name} EXCEPT TABLE {kept}) UNION ALL (TABLE {kept} EXCEPT TABLE public.{name})
)
THEN
  DELETE FROM public.{name};
  INSERT INTO public.{name} OVERRIDING SYSTEM VALUE TABLE {kept};
END IF;
"""
BEFORE: LiteralString = "CREATE TEMPORARY TABLE {before} AS TABLE public.{name}"
ADDED: LiteralString = """
CREATE TEMPORARY TABLE {kept} AS TABLE public.{name};
DELETE FROM {kept} k WHERE EXISTS (SELECT FROM {before} b WHERE b IS NOT DISTINCT FROM k);
DROP TABLE {before};
"""
PUT_BACK: LiteralString = """
INSERT INTO public.{name} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {kept};
"""
FURNISH: LiteralString = """
CREATE FUNCTION pg_temp.{function}() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
{steps}
UPDATE core_generation SET n = n + 1;
NOTIFY countersign_changed;
END
$$
"""
# Only ever counted up, or nobody's to change. A worker moves the cursor whenever it likes.
KEPT = ("core_generation", "django_migrations", "notifications_entrycursor")


@contextmanager
def _locked(connection: psycopg.Connection, name: str) -> Iterator[None]:
    connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])
    yield
    connection.execute("SELECT pg_advisory_unlock(hashtext(%s))", [name])


def _fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8]


def _exists(
    connection: psycopg.Connection, name: str, table: str = "pg_database", column: str = "datname"
) -> bool:
    query = sql.SQL("SELECT 1 FROM {} WHERE {} = %s").format(
        sql.Identifier(table), sql.Identifier(column)
    )
    return connection.execute(query, [name]).fetchone() is not None


def manage(arguments: list[str], *, env: Mapping[str, str]) -> str:
    """One of Django's commands in a process of its own."""
    return python("-m", "django", *arguments, env=env)


def python(*arguments: str, env: Mapping[str, str]) -> str:
    result = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", **env},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}:\n{result.stdout}{result.stderr}")
    return result.stdout
