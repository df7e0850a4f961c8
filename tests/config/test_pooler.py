"""PgBouncer in front of the database: where session state fails, the start is blocked."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from config.embedded.service import wait_until
from config.embedded.valkey import free_port
from config.session_check import OPTIONS, TRANSACTIONS, check_session
from tests.config.conftest import Manage

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
CONFIGURATION = """
[databases]
* = host={host} port={port} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
{more}
"""
Pooler = Callable[..., str]


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def pooler(urls: dict[str, str]) -> Iterator[Pooler]:
    """Starts one in front of the database; its URL."""
    if PGBOUNCER is None:
        pytest.skip("needs Debian's package pgbouncer")
    parts = conninfo_to_dict(urls["DATABASE_URL"])
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)

        def start(mode: str, more: str = "") -> str:
            listen = free_port()
            path = Path(name) / f"{listen}.ini"
            values = {key: parts[key] for key in ("host", "port", "user", "password")}
            path.write_text(CONFIGURATION.format(**values, listen=listen, mode=mode, more=more))
            # It does not run as root.
            user = ["-u", "nobody"] if getpass.getuser() == "root" else []
            argv = [str(PGBOUNCER), "-q", *user, str(path)]
            started.append(subprocess.Popen(argv, stderr=subprocess.DEVNULL))
            wait_until(lambda: listens(listen), seconds=10)
            return f"postgresql://any@127.0.0.1:{listen}/{parts['dbname']}"

        yield start
        for process in started:
            process.terminate()
            process.wait(10)


def test_the_database_itself_is_accepted(urls: dict[str, str]) -> None:
    assert check_session(urls["DATABASE_URL"]) == ""
    # Others say what is wrong then.
    assert check_session("postgresql://nobody@/nothing?host=/nowhere") == ""


@pytest.mark.parametrize(
    ("mode", "more", "said"),
    [
        ("session", "", OPTIONS),
        ("transaction", "", OPTIONS),
        ("session", "ignore_startup_parameters = options", OPTIONS),
        ("transaction", "ignore_startup_parameters = options", TRANSACTIONS),
    ],
)
def test_a_pooler_that_loses_session_state_is_named(
    pooler: Pooler, mode: str, more: str, said: str
) -> None:
    assert check_session(pooler(mode, more)) == said


def test_nothing_is_prepared_behind_such_a_pooler(manage: Manage, pooler: Pooler) -> None:
    url = pooler("transaction", "ignore_startup_parameters = options")

    blocked = manage("prepare", "--only-migrate", DATABASE_URL=url)

    assert blocked.returncode == 1
    assert TRANSACTIONS in blocked.stderr
