"""A house for the tests that kill what runs, on a PostgreSQL of their own."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from config.embedded.postgres import SUPERUSER, Postgres
from tests.database import ROOT, Databases
from tests.faults.witness import Witness
from tests.processes import Stack
from tests.services import running


@dataclass
class House:
    stack: Stack
    urls: dict[str, str]
    witness: Witness
    token: str

    def rows(self) -> list[Any]:
        with psycopg.connect(self.urls["DATABASE_URL"], row_factory=namedtuple_row) as db:
            return db.execute(
                "SELECT convert_from(arguments, 'UTF8')::json->>'nonce' AS nonce, state, executed,"
                " coalesce(entries, 0) AS entries, seq FROM calls_call c LEFT JOIN"
                " (SELECT call_id, count(*) AS entries FROM audit_entry GROUP BY call_id) e"
                " ON e.call_id = c.id"
            ).fetchall()


class Database:
    """A PostgreSQL of these tests' own, which they may kill, and a database there for each test."""

    urls: dict[str, str]

    def __init__(self, home: Path, resources: ExitStack) -> None:
        self._home, self._resources = home, resources
        # Killing processes, not the machine: what was written is there without waiting for disks.
        self.postgres = Postgres(home, settings={"fsync": "off"})
        self._start()
        self._all = Databases(self.postgres.url(SUPERUSER, "postgres"))

    def _start(self) -> None:
        log = self._home / "postgres.log"
        self.process = self._resources.enter_context(running(self.postgres, log))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self._start()

    def renew(self) -> Self:
        """With an empty database, for the next test."""
        if self.process.poll() is not None:
            self._start()
        self.urls = self._all.clone()
        # What sequences of a template have ahead stands in the log of the template alone: after a
        # crash the clone's would give the same numbers again, until there was a checkpoint.
        with self._all.superuser(self.urls) as connection:
            connection.execute("CHECKPOINT")
        return self


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    home = tmp_path_factory.mktemp("killed") / "database"
    home.mkdir(mode=0o711)
    with ExitStack() as resources:
        yield Database(home, resources)


def moved_in(own_stack: Stack, server: Database, tmp_path: Path, lease_s: str) -> Iterator[House]:
    yield from furnished(own_stack, server.renew().urls, tmp_path, lease_s)


def furnished(
    own_stack: Stack, urls: dict[str, str], tmp_path: Path, lease_s: str
) -> Iterator[House]:
    with Witness() as witness:
        own_stack.env |= {"COUNTERSIGN_DATA": str(tmp_path / "data")}
        own_stack.env |= urls | {"COUNTERSIGN_LEASE_S": lease_s}
        token = subprocess.run(
            [sys.executable, "-m", "tests.faults.world", witness.url],
            env={**own_stack.env, "DJANGO_SETTINGS_MODULE": "config.settings"},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        assert own_stack.agents
        assert own_stack.worker
        yield House(own_stack, urls, witness, token)
        # Processes before the database that they use.
        own_stack.__exit__()


@pytest.fixture
def folder() -> Iterator[Path]:
    """pytest's directories are for their owner only; PostgreSQL may run as somebody else."""
    with tempfile.TemporaryDirectory(prefix="countersign-restore-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
