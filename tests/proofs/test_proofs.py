"""The longest of what there is to prove, by hand: `manage.py test --proof`, an hour or two."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.database import ROOT
from tests.outcomes import DIRECTORY, ONLY

pytestmark = pytest.mark.proof

# The command has a database, a broker and a report of its own.
OF_THIS_RUN = {"DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", DIRECTORY, ONLY}
PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", "-s", "--log-cli-level=INFO")


def run(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of ours; what it says stands in this test's output."""
    env = {name: value for name, value in os.environ.items() if name not in OF_THIS_RUN}
    env |= environment
    command = [sys.executable, *argv]
    done = subprocess.run(command, cwd=ROOT, env=env, check=False, capture_output=True, text=True)
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_two_hundred_workers_are_killed_and_the_record_stays_true() -> None:
    assert run("manage.py", "faults", "--long").stdout.endswith("no violation\n")


def test_every_mistake_that_is_built_in_is_found() -> None:
    run("manage.py", "faults", "--prove")


def test_two_hundred_crowds_decide_once_each() -> None:
    run(*PYTEST, "tests/gateway/test_crowd.py", "-k", "all", CROWD_ROUNDS="200")


def test_ten_minutes_of_moods_leave_nothing_behind() -> None:
    run(*PYTEST, "tests/gateway/test_soak.py", SOAK_S="600")


def test_every_page_has_its_picture(tmp_path: Path) -> None:
    run("-m", "tests.browser.screenshots", str(tmp_path))

    assert len(list(tmp_path.rglob("*.png"))) > 100
