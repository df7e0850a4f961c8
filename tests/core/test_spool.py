"""The spool, when its disk is full just as a process first needs it."""

import errno
from pathlib import Path

import pytest

from core import spool
from core.spool import Spool


def values(root: Path) -> list[bytes]:
    """What the next process finds."""
    left = Spool(root, "next").left_behind()
    return [value for folder in left for _name, value in folder.read()]


def test_it_keeps_again_once_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(folder: Path) -> int | None:
        raise OSError(errno.ENOSPC, "No space left on device")

    owner = Spool(tmp_path, "owner")
    with monkeypatch.context() as full:
        full.setattr(spool, "_locked", no_room)
        with pytest.raises(OSError, match="No space left"):
            owner.keep("reply", b"yes")

    owner.keep("reply", b"yes")
    owner.close()

    assert values(tmp_path) == [b"yes"]


def test_it_keeps_nothing_in_a_folder_that_another_process_looks_into(tmp_path: Path) -> None:
    owner = Spool(tmp_path, "owner")
    (tmp_path / "owner").mkdir()
    for left in Spool(tmp_path, "next").left_behind():
        with pytest.raises(BlockingIOError):
            owner.keep("reply", b"yes")
        left.remove_if_empty()

    owner.keep("reply", b"yes")
    owner.close()

    assert values(tmp_path) == [b"yes"]
