"""What `manage.py test` is told of each of its runs: how long every test took, and what failed."""

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
    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        phase = Phase(report.nodeid, report.duration, report.failed)
        with self.file.open("a") as lines:
            lines.write(json.dumps(phase) + "\n")


def phases_in(directory: Path) -> Iterator[Phase]:
    for file in directory.glob("run-*"):
        for line in file.read_text().splitlines():
            yield Phase(*json.loads(line))


def pytest_configure(config: pytest.Config) -> None:
    # Several workers report to the process that started them.
    if DIRECTORY in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        directory = Path(os.environ[DIRECTORY])
        directory.mkdir(exist_ok=True)
        file = directory / f"run-{os.getpid()}"
        config.pluginmanager.register(Recorder(file), "outcomes")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if ONLY not in os.environ:
        return
    wanted = set(Path(os.environ[ONLY]).read_text().splitlines())
    left_out = [item for item in items if item.nodeid not in wanted]
    items[:] = [item for item in items if item.nodeid in wanted]
    config.hook.pytest_deselected(items=left_out)
