"""How far the database had come when this host last looked, kept outside of it.

PostgreSQL numbers its transactions, and the number of one that is durable never comes again, unless
the files of the whole cluster are older ones: a snapshot, a recovery to an earlier moment, a
standby that took over without the last transactions. In a process that dies the file is whole; of
the host's own crash it may miss the last moments.
"""

from __future__ import annotations

import fcntl
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

log = logging.getLogger(__name__)

# After a declared restore everything is compared anew: with a place of its own.
PLACE = "system_identifier || '/' || (SELECT max(number) FROM audit_origin)"
NEXT = f"SELECT {PLACE}, pg_snapshot_xmax(pg_current_snapshot())::text FROM pg_control_system()"
REFUSED = (
    "The database went back in time: {} Nothing starts on it until that is declared: run "
    "`python3 manage.py restore --declare` (see docs/en/guides/backup-restore.md)."
)
STANDBY = (
    "The database is a standby, which takes no writes: let DATABASE_URL name the primary, or all "
    "hosts with target_session_attrs=read-write (see docs/en/guides/operate.md)."
)
# Written down in the database itself, where everybody reads it (audit/rollback.py).
NOTICE = """
    INSERT INTO audit_rollback (origin, reason)
    SELECT COALESCE(max(number), 1), %s FROM audit_origin ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class KnownPosition:
    """The newest known transaction of a cluster and origin."""

    place: str = ""
    transaction: int = 0


def read(file: Path | None = None) -> KnownPosition:
    """From `file`, for who has no settings, or else the data directory's."""
    file = file or _path()
    try:
        return _parsed(_line_of(file))
    except FileNotFoundError:
        return KnownPosition()
    except OSError as error:
        log.error("%s: how far the database had come is not known: %s", file, error.strerror)
        return KnownPosition()


def _line_of(file: Path) -> bytes:
    """Waits for whoever writes it. One read in 20,000 beside a steady writer had digits of two
    numbers, and with them a number that was never seen."""
    opened = os.open(file, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_SH)
        return os.read(opened, 100)
    finally:
        os.close(opened)


def say_behind(seen: KnownPosition, place: str, following: str) -> str:
    """A sentence where the database, by its row of NEXT, has not come as far as was seen before."""
    if seen.place != place or int(following) > seen.transaction:
        return ""
    return f"its next transaction is {following}, and this host has seen {seen.transaction}."


def note(position: KnownPosition) -> None:
    """Only ever forward, whichever process of this host writes.

    The call is taken by now and has to be sent: a host that cannot write loses this memory, and
    says so, and no call becomes unknown by it.
    """
    try:
        _write(position)
    except OSError as error:
        log.error("%s: how far the database had come is not kept: %s", _path(), error.strerror)


def _write(position: KnownPosition) -> None:
    file = _open()
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = _parsed(os.pread(file, 100, 0))
        if known.place != position.place or known.transaction < position.transaction:
            os.pwrite(file, f"{position.place:>30} {position.transaction:>20}\n".encode(), 0)
    finally:
        os.close(file)


def _open() -> int:
    try:
        return os.open(_path(), os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        _path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(_path(), os.O_RDWR | os.O_CREAT, 0o600)


def _path() -> Path:
    return Path(settings.DATA_DIR) / "position"


def _parsed(line: bytes) -> KnownPosition:
    """Reads a line; a damaged one counts as missing."""
    place, _, transaction = line.decode(errors="replace").strip().partition(" ")
    number = transaction.strip()
    return KnownPosition(place, int(number)) if number.isdecimal() else KnownPosition()
