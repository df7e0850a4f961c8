"""Runs commands of the host's administrator: as the database's owner, also while nothing else
runs, and with the host and its user in the record."""

from __future__ import annotations

import fcntl
import getpass
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, InterfaceError, connection

from audit.services import Actor, record
from config.embedded import wal_archive
from config.embedded.postgres import Postgres
from config.embedded.service import CannotStart, wait_until
from config.installation import APP_URL, owner_url, seal_role
from core import die_with_parent

log = logging.getLogger(__name__)

OTHERS = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND usename IS NOT NULL AND pid <> pg_backend_pid()
      -- Of another role's session PostgreSQL may hide all but whose it is.
      AND coalesce(backend_type, 'client backend') = 'client backend'
      AND application_name IS DISTINCT FROM current_setting('application_name')
"""
ROOT = Path(__file__).resolve().parent.parent
REASON_MAX = 500


def add_data_argument(parser: CommandParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("COUNTERSIGN_DATA") or ROOT / "var"),
        help="the data directory (%(default)s)",
    )


def enter(data: Path, *, may_be_new: bool = False) -> None:
    """Replaces this process by one that works as the database's owner, and returns in that one."""
    if os.environ.get(APP_URL):
        return
    is_installed = (data / "postgres").exists() or os.environ.get("DATABASE_URL")
    if not (may_be_new or is_installed):
        raise CommandError(
            f"There is no installation in {data}. `python3 manage.py up` makes one; of another, "
            "say --data or set COUNTERSIGN_DATA."
        )
    _check_owner(data)
    try:
        with _database(data) as urls:
            env = {
                **os.environ,
                "DATABASE_URL": urls["DATABASE_OWNER_URL"],
                "DATABASE_OWNER_URL": urls["DATABASE_OWNER_URL"],
                "DATABASE_DIRECT_URL": "",
                APP_URL: urls.get("DATABASE_DIRECT_URL") or urls["DATABASE_URL"],
                "COUNTERSIGN_DATA": str(data),
                # Whoever owns the host may also sign: a restore is declared by a checkpoint.
                "COUNTERSIGN_SEAL_KEY_FILE": seal_key(data),
                "COUNTERSIGN_NO_BOOTSTRAP": "1",
                "PGAPPNAME": f"countersign host {os.getpid()}",
            }
            if url := urls.get("DATABASE_SEAL_URL"):
                env["COUNTERSIGN_SEAL_ROLE"] = seal_role(url)
            argv = [sys.executable, str(ROOT / "manage.py"), *sys.argv[1:]]
            code = subprocess.run(argv, env=env, check=False).returncode
    except CannotStart as error:
        raise CommandError(str(error)) from error
    sys.exit(code)


def seal_key(data: Path) -> str:
    return os.environ.get("COUNTERSIGN_SEAL_KEY_FILE") or str(data / "seal" / "key")


def app_environment() -> dict[str, str]:
    """The environment that `up` gives its processes, for commands that act as the application."""
    return {**os.environ, "DATABASE_URL": os.environ[APP_URL]}


def other_sessions() -> set[int]:
    """The numbers of the others that are connected to the database."""
    with connection.cursor() as cursor:
        cursor.execute(OTHERS)
        return {pid for (pid,) in cursor.fetchall()}


def actor() -> Actor:
    return Actor("system", None, f"{getpass.getuser()} on {socket.gethostname()}")


def record_failure(action: str, reason: str, **details: Any) -> None:
    """Writes an entry, of which people are notified, and to the log, which needs no database."""
    log.error("%s: %s", action, reason)
    try:
        record(action, actor=actor(), reason=reason[:REASON_MAX], **details)
    except (DatabaseError, InterfaceError) as error:
        log.warning("%s could not be recorded: %s", action, error)


def _check_owner(data: Path) -> None:
    if data.exists() and os.geteuid() not in (0, data.stat().st_uid):
        raise CommandError(f"Only the owner of {data} may do this: run it as that user.")


@contextmanager
def _database(data: Path) -> Iterator[Mapping[str, str]]:
    """The database's URLs; starts the embedded database for the command if nothing runs."""
    if url := os.environ.get("DATABASE_URL"):
        direct = os.environ.get("DATABASE_DIRECT_URL", "")
        yield {
            "DATABASE_URL": url,
            "DATABASE_DIRECT_URL": direct,
            "DATABASE_OWNER_URL": owner_url({}),
        }
        return
    data.mkdir(mode=0o711, parents=True, exist_ok=True)
    with (data / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield _urls_of_up(data)
            return
        with running_postgres(data, wal_archive.settings()) as urls:
            yield urls


def _urls_of_up(data: Path) -> dict[str, str]:
    shared = ("services.json", "owner.json")
    return {
        name: url for file in shared for name, url in json.loads((data / file).read_text()).items()
    }


@contextmanager
def running_postgres(
    data: Path, options: Mapping[str, str] | None = None
) -> Iterator[dict[str, str]]:
    """The embedded one of a data directory, while entered; options: PostgreSQL's."""
    # What `restart` sends to whoever holds the lock.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    service = Postgres(data, settings=options)
    service.prepare()
    argv, env = service.command()
    process = subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=die_with_parent.lifelines(),
        start_new_session=True,
    )
    try:
        wait_until(lambda: service.is_ready(process.pid) or process.poll() is not None, seconds=60)
        if not service.is_ready(process.pid):
            raise CannotStart("PostgreSQL did not get ready: start `up` and see what it says.")
        service.make_roles()
        yield service.urls()
    finally:
        process.send_signal(service.stop_signal)
        process.wait(60)
