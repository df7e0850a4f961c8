"""What `manage.py test` is told of its runs: times, what failed, and what did not end."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

# Where a run writes what it did, and where it reads what alone it is to do.
DIRECTORY = "TESTS_OUTCOMES"
ONLY = "TESTS_ONLY"


class Phase(NamedTuple):
    """Setup, call or teardown of a test."""

    test: str
    seconds: float
    failed: bool


class Recorder:
    """Writes files of lines: `run` of phases, and of tests `collected`, `begun` and `ended`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._write("collected", *(item.nodeid for item in session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._write("collected", *ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write("begun", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        phase = Phase(report.nodeid, report.duration, report.failed)
        self._write("run", json.dumps(phase))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write("ended", nodeid)

    def _write(self, kind: str, *lines: str) -> None:
        with (self.directory / f"{kind}-{os.getpid()}").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)


def phases_in(directory: Path) -> Iterator[Phase]:
    return (Phase(*json.loads(line)) for line in _lines(directory, "run"))


def unfinished_in(directory: Path) -> set[str]:
    return {*_lines(directory, "collected")} - {*_lines(directory, "ended")}


def running_in(directory: Path) -> set[str]:
    """The unfinished tests that had begun."""
    return {*_lines(directory, "begun")} - {*_lines(directory, "ended")}


def left_out_in(directory: Path) -> set[str]:
    """What had not begun when a run's time was over (tests/budget.py)."""
    return {*_lines(directory, "left")}


def quiet_since(directory: Path) -> float:
    """When a test last began or ended, in seconds since 1970; 0 if none did."""
    return max((file.stat().st_mtime for file in directory.glob("*-*")), default=0)


def _lines(directory: Path, kind: str) -> Iterator[str]:
    for file in directory.glob(f"{kind}-*"):
        yield from file.read_text().splitlines()


def pytest_configure(config: pytest.Config) -> None:
    # Several workers report to the process that started them.
    if DIRECTORY in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        directory = Path(os.environ[DIRECTORY])
        directory.mkdir(exist_ok=True)
        config.pluginmanager.register(Recorder(directory), "outcomes")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if ONLY not in os.environ:
        return
    wanted = set(Path(os.environ[ONLY]).read_text().splitlines())
    left_out = [item for item in items if item.nodeid not in wanted]
    items[:] = [item for item in items if item.nodeid in wanted]
    config.hook.pytest_deselected(items=left_out)
