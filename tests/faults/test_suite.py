"""The fault suite's short run: everything is killed, stopped and starved at least once."""

import subprocess
import sys

import pytest

from tests.database import ROOT


def faults(*options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "manage.py", "faults", *options]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.alone
def test_whatever_is_done_to_it_the_record_stays_true() -> None:
    done = faults()

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("no violation\n")


@pytest.mark.slow
@pytest.mark.alone
def test_it_finds_a_mistake() -> None:
    done = faults("--broken", "sweep-without-claim", "--seed", "1")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "received" in done.stdout
