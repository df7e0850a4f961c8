"""What this host remembers of the database, when its disk does not take it."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from audit import position
from audit.position import KnownPosition

SEEN = KnownPosition("cluster/1", 700)


@pytest.fixture(autouse=True)
def data(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path / "data"
    return tmp_path / "data"


def test_only_ever_forward(data: Path) -> None:
    position.note(SEEN)
    position.note(KnownPosition("cluster/1", 699))
    assert position.read() == SEEN


def test_a_full_disk_is_named_and_stops_no_call(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    position.note(SEEN)
    assert f"{data}/position: how far the database had come is not kept: No space" in caplog.text


def test_a_line_that_is_being_written_is_not_read(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    position.note(SEEN)
    lock = fcntl.flock
    # In place of waiting.
    monkeypatch.setattr(fcntl, "flock", lambda file, how: lock(file, how | fcntl.LOCK_NB))

    with (data / "position").open("rb") as writer:
        lock(writer, fcntl.LOCK_EX)
        assert position.read() == KnownPosition()
        assert "Resource temporarily unavailable" in caplog.text

    assert position.read() == SEEN


@pytest.mark.parametrize("damaged", [b"\xff\xfe" * 26, b"\0" * 52, b"cluster/1 many", b""])
def test_a_damaged_line_is_written_anew(data: Path, damaged: bytes) -> None:
    data.mkdir()
    (data / "position").write_bytes(damaged)
    assert position.read() == KnownPosition()

    position.note(SEEN)

    assert position.read() == SEEN


def test_what_cannot_be_read_is_named_and_stops_no_call(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data / "position").mkdir(parents=True)

    assert position.read() == KnownPosition()
    position.note(SEEN)

    assert f"{data}/position: how far the database had come is not known: Is a dir" in caplog.text
