"""Files with a secret in them: for this user alone, and nobody ever reads half of one."""

import os
from pathlib import Path


def create_once(path: Path, text: str) -> None:
    """Creates the file unless it exists; of processes that start together one writes it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = _draft(path, text)
    try:
        # Written beside it and linked into place.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def write_private(path: Path, text: str) -> None:
    """Replaces `path` at one stroke; on the disk when this returns."""
    _draft(path, text).rename(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Names of files are the folder's: a new or renamed file lasts once it is on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _draft(path: Path, text: str) -> Path:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    # Of a process that was killed, and had this number.
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return draft
