"""The fault suite's short run: everything is killed, stopped and starved at least once."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.database import ROOT

RUNS = {"sound": [], "broken": ["--broken", "sweep-without-claim", "--seed", "1"]}
KINDS = [f"kill {who}" for who in ("worker", "gateway", "web", "broker", "database")]
KINDS += [f"pause {who}" for who in ("worker", "gateway", "web", "broker", "database")]
KINDS += ["cut database", "wipe broker", "shift clock", "power cut", "lose cancels"]
KINDS += ["hang database", "hang answers", "hang broker", "kill upstream", "pause upstream"]
KINDS += ["kill sealer", "kill supervisor", "restart supervisor"]
Runs = dict[str, subprocess.Popen[str]]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """Each has a house of its own, and waits most of its time: they go on side by side."""
    started = {}
    for name, options in RUNS.items():
        argv = [sys.executable, "manage.py", "faults", *options]
        started[name] = subprocess.Popen(
            argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    yield started
    for run in started.values():
        with run:
            run.terminate()


@pytest.mark.alone
def test_whatever_is_done_to_it_the_record_stays_true(runs: Runs) -> None:
    said, _ = runs["sound"].communicate()

    assert runs["sound"].returncode == 0, said
    assert said.endswith("no violation\n"), said
    # Where only root may fill a disk, the run itself says that it was left out.
    assert [kind for kind in KINDS if f" {kind}" not in said] == []
    assert "every case of misbehaviour" in said
    assert "0 are not sealed yet" in said


@pytest.mark.alone
def test_it_finds_a_mistake(runs: Runs) -> None:
    said, _ = runs["broken"].communicate()

    assert runs["broken"].returncode == 1, said
    assert "received" in said
