"""PgBouncer in front of a test's database, where it is installed."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
from functools import cache
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from config.embedded.service import wait_until
from config.embedded.valkey import free_port
from core import die_with_parent

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
# Of it in transaction mode.
KEEPS_STATEMENTS = (1, 21)
CONFIGURATION = """
[databases]
* = host={host} port={port} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
max_client_conn = 500
default_pool_size = 20
{more}
"""


@cache
def version() -> tuple[int, ...]:
    """(0,) where it is not installed."""
    if PROGRAM is None:
        return (0,)
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"PgBouncer (\d+)\.(\d+)", said.stdout)
    assert found, said.stdout
    return tuple(map(int, found.groups()))


needed = pytest.mark.skipif(PROGRAM is None, reason="needs Debian's package pgbouncer")
newer = pytest.mark.skipif(version() < KEEPS_STATEMENTS, reason="needs PgBouncer from 1.21")
older = pytest.mark.skipif(
    PROGRAM is None or version() >= KEEPS_STATEMENTS, reason="needs PgBouncer before 1.21"
)


class Pooler:
    def __init__(self, folder: Path, url: str, mode: str, more: str = "") -> None:
        parts = conninfo_to_dict(url)
        self._port = free_port()
        path = folder / f"{self._port}.ini"
        values = {key: parts[key] for key in ("host", "port", "user", "password")}
        text = CONFIGURATION.format(**values, listen=self._port, mode=mode, more=more)
        path.write_text(text)
        # It does not run as root.
        user = ["-u", "nobody"] if getpass.getuser() == "root" else []
        self._argv = [str(PROGRAM), "-q", *user, str(path)]
        self.url = f"postgresql://{parts['user']}@127.0.0.1:{self._port}/{parts['dbname']}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            die_with_parent.command(self._argv),
            pass_fds=die_with_parent.lifelines(),
            stderr=subprocess.DEVNULL,
        )
        assert wait_until(self._listens, seconds=10), "PgBouncer does not start"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
        except OSError:
            return False
        return True
