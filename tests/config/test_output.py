"""The level of a line in the output of `up`: a collector looks for what is grave by it."""

from __future__ import annotations

import errno
import io
import json
import logging

import pytest

from config.output import Output

AT = "2026-11-30 15:37:43.166 UTC "


@pytest.mark.parametrize(
    ("line", "level"),
    [
        (AT + "LOG:  database system is ready to accept connections", "INFO"),
        (AT + 'WARNING:  archiving write-ahead log file "01" failed too many times', "WARNING"),
        (AT + "ERROR:  canceling statement due to lock timeout", "ERROR"),
        (AT + "FATAL:  the database system is starting up", "ERROR"),
        (AT + 'PANIC:  could not write to file "pg_wal/xlogtemp.1": No space left', "CRITICAL"),
        ("cp: cannot create regular file 'x'", "INFO"),
        ('{"level": "WARNING", "message": "of a child"}', "WARNING"),
    ],
)
def test_a_line_of_postgresql_has_its_level(
    line: str, level: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERSIGN_LOG_FORMAT", "json")

    Output().relay("postgres", line)

    printed = json.loads(capsys.readouterr().out)
    assert (printed["process"], printed["level"]) == ("postgres", level)


@pytest.mark.parametrize("style", ["json", "text"])
def test_a_line_of_its_own_has_a_level_too(
    style: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERSIGN_LOG_FORMAT", style)

    Output().say("worker", "ended by itself", level=logging.WARNING)

    assert "WARNING" in capsys.readouterr().out


class Disk(io.StringIO):
    """Of a log, and full at first."""

    is_full = True

    def flush(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")


def test_processes_are_heard_further_after_their_log_had_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = Disk()
    monkeypatch.setattr("sys.stdout", disk)
    output = Output()

    output.relay("agents", "no room")
    disk.is_full = False
    output.relay("agents", "room again")

    assert "room again" in disk.getvalue()
