"""Checkpoints kept elsewhere: what makes a rewritten record visible.

Two places by default: a file, which belongs on another disk or host, and the log, which most
installations ship away.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from django.conf import settings

from audit.models import Checkpoint
from audit.verify import notes

log = logging.getLogger(__name__)

# More than the last signed note takes.
TAIL = 4096


def remember(newest: Checkpoint) -> None:
    """The last one alone, at every batch: for a database that goes back in time between anchors
    (audit/rollback.py), and for what its restore declares. On this host, so it is no anchor."""
    path = remembered_in()
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(newest.note)
        draft.rename(path)
    except OSError as error:
        log.error("%s cannot be written: %s", path, error)


def remembered_in() -> Path:
    return Path(settings.DATA_DIR) / "last-checkpoint"


def kept_in(path: Path) -> list[str]:
    """The last notes of the file, the newest first."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            return list(notes(file.read().decode(errors="replace")))[::-1]
    except FileNotFoundError:
        return []


def keep(newest: Checkpoint) -> None:
    """Append a checkpoint to the file, and say it in the log."""
    path = Path(settings.ANCHOR_FILE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(newest.note + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        log.error("anchor: %s cannot be written: %s", path, error)
    log.info("anchor: %s", " ".join(newest.note.split()))
