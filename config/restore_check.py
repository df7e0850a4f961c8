"""Does a backup come back? It is restored into a scratch directory, verified there, and removed.

By the same commands as in need, on an embedded PostgreSQL of its own: what runs is not touched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings

from audit import erasure_ledger
from config import archive, host
from core.errors import CountersignError

# Variables of this installation, which the scratch one may not know.
OWN = ("DATABASE_", "REDIS_", "PG", "COUNTERSIGN_")
KEPT = {
    "COUNTERSIGN_KEY_NETWORKS",
    "COUNTERSIGN_NO_BOOTSTRAP",
    "COUNTERSIGN_SECRET_KEY",
    "COUNTERSIGN_SECRET_KEY_FILE",
}
# How `audit_verify` ends where everything holds, and a restore is declared.
RESTORED = 3
SAID_LINES = 20


class CannotRestore(CountersignError):
    """The backup does not come back; says why."""


@dataclass(frozen=True, slots=True)
class RestoreCheck:
    """Seconds and bytes of one."""

    backup: str
    taken_at: str
    entries: int
    backup_bytes: int
    database_bytes: int
    read_s: float
    restore_s: float
    verify_s: float

    def facts(self) -> dict[str, Any]:
        return asdict(self)


def newest_in(folder: Path) -> Path:
    """The newest backup of a folder. Raises CannotRestore."""
    found = sorted(folder.glob("*.tar"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise CannotRestore(f"There is no backup in {folder}.")
    return found[-1]


def check(path: Path, *, scratch: Path | None = None) -> RestoreCheck:
    """Raises CannotRestore, or archive.BadBackup or OSError."""
    began = time.monotonic()
    manifest = archive.read(path)
    read = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="countersign-restore.", dir=scratch) as name:
        # Whoever PostgreSQL runs as has to get there.
        Path(name).chmod(0o711)
        data = Path(name) / "data"
        data.mkdir(mode=0o711)
        with _environment(data) as env:
            _run(["restore", str(path), "--without-copy", *_restore_options(data)], env)
            restored = time.monotonic()
            _run(["audit_verify"], env, may_end=(0, RESTORED))
            verified = time.monotonic()
            size = _database_size(env["DATABASE_OWNER_URL"])
    return RestoreCheck(
        backup=path.name,
        taken_at=str(manifest["taken_at"]),
        entries=int(manifest["record"]["leaves"]),
        backup_bytes=path.stat().st_size,
        database_bytes=size,
        read_s=round(read - began, 1),
        restore_s=round(restored - read, 1),
        verify_s=round(verified - restored, 1),
    )


def _restore_options(data: Path) -> list[str]:
    """The options of a restore on a new host: anchors and the ledger, in their present state."""
    anchors = Path(settings.ANCHOR_FILE)
    ledger = erasure_ledger.location()
    given = ["--data", str(data)]
    given += ["--anchor", str(anchors)] if anchors.exists() else ["--without-anchor"]
    return given + (["--ledger", str(ledger)] if ledger.exists() else ["--without-ledger"])


@contextmanager
def _environment(data: Path) -> Iterator[dict[str, str]]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT or not name.startswith(OWN)
    }
    with host.running_postgres(data) as urls:
        yield {**kept, **urls, "COUNTERSIGN_DATA": str(data), "COUNTERSIGN_NO_BOOTSTRAP": "1"}


def _run(arguments: list[str], env: Mapping[str, str], *, may_end: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(
        [sys.executable, str(host.ROOT / "manage.py"), *arguments],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in may_end:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise CannotRestore(f"{arguments[0]}: " + "\n".join(lines[-SAID_LINES:]))


def _database_size(url: str) -> int:
    with psycopg.connect(url) as link:
        row = link.execute("SELECT pg_database_size(current_database())").fetchone()
    return int(row[0]) if row else 0
