"""PostgreSQL twice: a primary, and a standby that has each commit before it is acknowledged."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, quote, urlsplit

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config.embedded.postgres import SUPERUSER, Postgres
from config.embedded.service import environment, hand_over, wait_until
from core.private_files import write_private
from tests.services import running

# Processes are killed, not machines: what was written is there without waiting for disks.
SETTINGS = {"fsync": "off", "max_connections": "200", "log_min_messages": "fatal"}
# To be asked to take over.
SETTINGS |= {"hot_standby": "on"}
IS_SYNCHRONOUS = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"


class Node:
    """One of the servers; `copy_of` makes its files anew from one that runs."""

    def __init__(self, data: Path, **settings: str) -> None:
        data.mkdir(mode=0o711)
        self.data = data
        self.postgres = Postgres(data, settings=SETTINGS | settings)

    def copy_of(self, source: Mapping[str, str], *options: str) -> None:
        shutil.rmtree(self.postgres.home, ignore_errors=True)
        write_private(self.data / "passwords.json", json.dumps({SUPERUSER: source["password"]}))
        program = str(self.postgres.programs / "pg_basebackup")
        argv = [program, f"--pgdata={self.postgres.home}", f"--dbname={make_conninfo(**source)}"]
        subprocess.run(
            [*argv, "--checkpoint=fast", "--no-sync", *options], env=environment(), check=True
        )
        for path in [self.postgres.home, *self.postgres.home.rglob("*")]:
            hand_over(path, self.postgres.identity)

    def start(self, resources: ExitStack) -> None:
        log = self.data / "postgres.log"
        self.process = resources.enter_context(running(self.postgres, log))

    def kill(self) -> None:
        """As if its machine had lost power: no process of it does anything any more."""
        server = psutil.Process(self.process.pid)
        for process in [server, *server.children(recursive=True)]:
            process.kill()
        self.process.wait()

    @property
    def admin(self) -> dict[str, str]:
        parts = conninfo_to_dict(self.postgres.url(SUPERUSER, "postgres"))
        return {name: str(value) for name, value in parts.items()}

    def superuser(self) -> psycopg.Connection[Any]:
        return psycopg.connect(make_conninfo(**self.admin), autocommit=True)

    def require_standby(self) -> None:
        with self.superuser() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            found = wait_until(
                lambda: connection.execute(IS_SYNCHRONOUS).fetchone() is not None, seconds=30
            )
        assert found, "the standby does not follow"

    def promote(self) -> None:
        with self.superuser() as connection:
            assert connection.execute("SELECT pg_promote()").fetchone() == (True,)


class Pair:
    """Begins as a copy of `source`. A standby that takes over serves alone until the other one
    follows it, and only then may be lost."""

    def __init__(self, source: Mapping[str, str], folder: Path) -> None:
        self._resources = ExitStack()
        self.primary, self.standby = Node(folder / "a"), Node(folder / "b")
        self.primary.copy_of(source)

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self.primary.start(opened)
            self._resources = opened.pop_all()
        self.follow()
        return self

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def follow(self) -> None:
        """The standby's files are made anew, as what the former primary wrote last may be nowhere
        else."""
        self.standby.copy_of(self.primary.admin, "--write-recovery-conf")
        with (self.standby.postgres.home / "postgresql.auto.conf").open("a") as settings:
            settings.write("synchronous_standby_names = ''\n")
        self.standby.start(self._resources)
        self.primary.require_standby()

    def fail_over(self) -> None:
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def url(self, url: str) -> str:
        """To the primary, whichever of the two that is."""
        parts = urlsplit(url)
        assert "port" in parse_qs(parts.query)
        hosts = [str(node.postgres.sockets) for node in (self.primary, self.standby)]
        address = f"host={quote(','.join(hosts), safe='')}&port=5432,5432"
        return parts._replace(query=f"{address}&target_session_attrs=read-write").geturl()
