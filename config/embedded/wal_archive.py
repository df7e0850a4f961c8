"""The embedded PostgreSQL's log of changes, copied to a folder: with it and a base backup, the
database can be recovered to any second (docs/en/guides/backup-restore.md)."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from config.embedded.service import CannotStart
from core import die_with_parent

# What was changed is archived after so long at the latest, in files of 16 MB each.
WITHIN = "60s"
KEEP_DAYS, BASE_BACKUPS = "COUNTERSIGN_WAL_KEEP_DAYS", "COUNTERSIGN_BASE_BACKUPS"


@dataclass(frozen=True, slots=True)
class Pruning:
    """Each moment of the last `keep` is recovered from the two folders; older files go."""

    archive: Path
    backups: Path
    keep: timedelta


def settings() -> dict[str, str]:
    """PostgreSQL's options; none without COUNTERSIGN_WAL_ARCHIVE. Commands beside a stopped
    installation need them too, since what is not archived is missing for ever."""
    folder = os.environ.get("COUNTERSIGN_WAL_ARCHIVE", "")
    if not folder:
        return {}
    if not os.path.isabs(folder):
        raise CannotStart("COUNTERSIGN_WAL_ARCHIVE must be an absolute path.")
    return {"archive_mode": "on", "archive_command": command(folder), "archive_timeout": WITHIN}


def find_unwritable(identity: str) -> str:
    """A sentence, where PostgreSQL's user cannot write to the folder. It starts all the same: the
    folder may be on a disk that comes back."""
    folder = os.environ.get("COUNTERSIGN_WAL_ARCHIVE", "")
    if not folder:
        return ""
    looked = ["/bin/sh", "-c", 'test -d "$1" && test -w "$1"', "sh", folder]
    argv = die_with_parent.command(looked, signal=signal.SIGKILL, identity=identity)
    if subprocess.run(argv, pass_fds=die_with_parent.lifelines(), check=False).returncode == 0:
        return ""
    return (
        f"The user that PostgreSQL runs as cannot write to {folder} (COUNTERSIGN_WAL_ARCHIVE): "
        "nothing is archived until it can, and the log of changes fills PostgreSQL's disk."
    )


def pruning() -> Pruning | None:
    """None where everything is kept. Raises CannotStart."""
    kept = os.environ.get("COUNTERSIGN_WAL_KEEP_DAYS", "")
    folder = os.environ.get("COUNTERSIGN_BASE_BACKUPS", "")
    if not kept:
        return None
    if not (kept.isdecimal() and int(kept) > 0):
        raise CannotStart(f"{KEEP_DAYS} must be a number of days from 1 on.")
    archive = os.environ.get("COUNTERSIGN_WAL_ARCHIVE", "")
    if not (archive and os.path.isabs(folder)):
        raise CannotStart(
            f"{KEEP_DAYS} needs COUNTERSIGN_WAL_ARCHIVE, and in {BASE_BACKUPS} the absolute path "
            "of the folder with the base backups."
        )
    return Pruning(Path(archive), Path(folder), timedelta(days=int(kept)))


def command(folder: str) -> str:
    """A file is there whole or not at all. PostgreSQL may ask again for one that it archived just
    before a crash; another file of its name is never replaced."""
    target = shlex.quote(folder.replace("%", "%%") + "/%f")
    draft = shlex.quote(folder.replace("%", "%%") + "/%f.part")
    return (
        f"if test -f {target}; then cmp -s %p {target};"
        f" else cp %p {draft} && sync {draft} && mv {draft} {target}; fi"
    )
