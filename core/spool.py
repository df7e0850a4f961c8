"""A spool of data that must survive a database outage: sealed, fsynced, replayed later.

Each process locks a folder of its own for as long as it lives. An unlocked folder was left by a
process that died, and is taken over by whoever finds it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from core import seal
from core.private_files import sync_folder
from core.seal import Unsealable

log = logging.getLogger(__name__)

PURPOSE = "spool"
SUFFIX = ".reply"
ASIDE = "aside"
LOCK = "lock"


class Spool:
    """Files of one process below `root`. Every method blocks: call it outside of an event loop."""

    def __init__(self, root: Path, owner: str) -> None:
        self._root, self._owner = root, owner.replace("/", "_")
        self._folder: Path | None = None
        self._lock: int | None = None

    def keep(self, name: str, value: bytes) -> None:
        """Writes the data to disk; it survives a crash of process or machine once this returns."""
        folder = self._own()
        draft, path = folder / f"{name}.draft", folder / f"{name}{SUFFIX}"
        with draft.open("wb") as file:
            file.write(seal.seal(PURPOSE, value, place=name))
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
        sync_folder(folder)

    def drop(self, name: str) -> None:
        if self._folder is not None:
            (self._folder / f"{name}{SUFFIX}").unlink(missing_ok=True)

    def close(self) -> None:
        """Unlocks the folder; what is still in it is left to the next process."""
        if self._folder is None or self._lock is None:
            return
        if not any(self._folder.glob(f"*{SUFFIX}")):
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)
        self._folder = self._lock = None

    def left_behind(self) -> Iterator[AbandonedSpool]:
        """Folders of processes that have died, each locked while it is read."""
        if not self._root.exists():
            return
        for folder in sorted(self._root.iterdir()):
            if folder == self._folder or folder.name == ASIDE or not folder.is_dir():
                continue
            lock = _locked(folder)
            if lock is not None:
                try:
                    yield AbandonedSpool(folder)
                finally:
                    os.close(lock)

    def _own(self) -> Path:
        if self._folder is None:
            folder = self._root / self._owner
            # It is there if its lock could not be made, on a full disk.
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = _locked(folder)
            if lock is None:
                raise BlockingIOError(f"another process looks into {folder}")
            self._folder, self._lock = folder, lock
            sync_folder(folder)
            sync_folder(self._root)
        return self._folder


class AbandonedSpool:
    """A folder whose process has died."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> Iterator[tuple[str, bytes]]:
        """Names and values. Unreadable files are moved aside and logged."""
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            name = path.name.removesuffix(SUFFIX)
            try:
                value = seal.unseal(PURPOSE, path.read_bytes(), place=name)
            except Unsealable:
                self.set_aside(name, "it was altered, or sealed with another key")
            else:
                yield name, value

    def drop(self, name: str) -> None:
        (self._folder / f"{name}{SUFFIX}").unlink(missing_ok=True)

    def set_aside(self, name: str, why: str) -> None:
        aside = self._folder.parent / ASIDE
        aside.mkdir(mode=0o700, exist_ok=True)
        log.error("spool: %s is set aside in %s: %s", name, aside, why)
        (self._folder / f"{name}{SUFFIX}").rename(aside / f"{name}{SUFFIX}")

    def remove_if_empty(self) -> None:
        if not any(self._folder.glob(f"*{SUFFIX}")):
            shutil.rmtree(self._folder, ignore_errors=True)


def _locked(folder: Path) -> int | None:
    """A lock that is released when its holder ends, however it ends; None if it is taken."""
    lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
