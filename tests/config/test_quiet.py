"""Nothing of level warning or above is printed where nothing is wrong: at a first start with the
examples, a day's work, a restart, Ctrl-C, and a second start on what is there then."""

import json
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded.service import wait_until
from tests.config.up import ROOT, Up, all_gone, bare_environment

# As Python, PostgreSQL and Python's warnings name them; Valkey marks its own with a #.
LOUD = re.compile(
    r"\b(WARNING|ERROR|CRITICAL|FATAL|PANIC|Traceback)\b|\b\w+Warning: |^\d+:[A-Z] .{10,30} # "
)
QUIET_LEVELS = {"DEBUG", "INFO"}
DAY = """\
  weather.forecast: Succeeded
  documents.search_documents: Succeeded
  documents.read_document: Succeeded
  calculator.evaluate: Succeeded
  calculator.divide: Tool error
  calculator.evaluate: Invalid request
  ticketing.refund_everybody: Invalid request
  file-writer.write_file: Pending approval
  mailer.send_mail: Pending approval
  file-writer.delete_file: Pending approval
Three wait for you under Queue; the rest is under Audit, Who ran what, agent scout.
"""


@pytest.fixture
def data() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="countersign-quiet-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "data"


def loud(up: Up) -> list[str]:
    records = [json.loads(line) for line in up.text().splitlines()]
    assert records
    return [
        f"{record['process']}: {record['message']}"
        for record in records
        if record["level"] not in QUIET_LEVELS or LOUD.search(record["message"])
    ]


def ended(up: Up, *command: str) -> str:
    done = subprocess.run(
        up.argv(command[0]) if command[0] == "restart" else [up.python, "manage.py", *command],
        cwd=ROOT,
        env=bare_environment() | {"COUNTERSIGN_DATA": str(up.data)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def interrupt(up: Up) -> None:
    """Ctrl-C, and everything is gone."""
    family = up.family()
    up.process.send_signal(signal.SIGINT)
    assert up.ends() == 0
    assert all_gone(family, seconds=0)


def left_over(data: Path) -> list[Path]:
    """Logs that somebody would have to look for."""
    return [path for path in data.rglob("*") if path.is_file() and ".log" in path.suffixes]


@pytest.mark.alone
def test_nothing_is_louder_than_info_where_nothing_is_wrong(data: Path) -> None:
    up = Up(data, examples=True)
    with up:
        assert up.is_healthy()
        assert ended(up, "demo_day") == DAY
        assert ended(up, "audit_verify")
        assert ended(up, "restart") == "Every process was restarted.\n"
        assert wait_until(up.is_healthy, seconds=30)
        interrupt(up)
    assert loud(up) == []

    with up:
        assert up.is_healthy()
        assert ended(up, "sign_in_link")
        interrupt(up)
    assert loud(up) == []
    assert left_over(data) == []


@pytest.mark.parametrize(
    ("line", "is_loud"),
    [
        ("2026-11-24 14:44:08.228 UTC WARNING:  collation mismatch", True),
        ("2026-11-24 14:44:08.228 UTC FATAL:  terminating connection", True),
        ("16231:M 24 Nov 2026 14:46:48.087 # Possible SECURITY ATTACK detected.", True),
        ("/x/y.py:3: DeprecationWarning: old", True),
        ("Traceback (most recent call last):", True),
        ("2026-11-24 14:44:08.228 UTC LOG:  database system is shut down", False),
        ("16231:signal-handler (1795531608) Received SIGTERM scheduling shutdown...", False),
    ],
)
def test_what_counts_as_loud(line: str, is_loud: bool) -> None:
    assert bool(LOUD.search(line)) is is_loud
