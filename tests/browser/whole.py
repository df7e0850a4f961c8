"""What a run of every browser test left unused: the plugin behind tests/browser/test_whole.py.

Each process writes what its pages showed, what was used of it, and which tests it finished; the
comparing test runs last and waits for the others. It takes part only where every other browser
test does, since what a part of them leaves unused says nothing.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.budget import UNTIL
from tests.outcomes import ONLY

HERE = Path(__file__).parent
DIRECTORY = "TESTS_CONTROLS"
COMPARING = "test_whole.py"


class Control(NamedTuple):
    # The page's route, or what stands on many pages: "frame", "card", "form of a schema".
    part: str
    kind: str
    name: str


class Left(NamedTuple):
    unused: list[str]
    # Pages, and kinds of controls, that nobody used by keyboard.
    never_keyed: list[str]


def directory() -> Path:
    return Path(os.environ[DIRECTORY])


def compared(written: Path) -> Left:
    said: dict[str, set[Control]] = {"seen": set(), "used": set(), "keyed": set()}
    for what, *control in _lines(written, "controls"):
        # A page that is not there has what a test put into it; Django's admin is Django's.
        if control[0] != "nowhere" and not control[2].startswith("admin:"):
            said[what].add(Control(*control))
    unused = sorted(" | ".join(one) for one in said["seen"] - said["used"])
    never_keyed = {one.part for one in said["used"]} - {one.part for one in said["keyed"]}
    never_keyed |= {one.kind for one in said["used"]} - {one.kind for one in said["keyed"]}
    return Left(unused, sorted(never_keyed - {"drag", "form", "without JavaScript"}))


def unfinished() -> set[str]:
    return read("wanted") - read("finished")


def read(kind: str) -> set[str]:
    return {str(name) for name in _lines(directory(), kind)}


def _lines(written: Path, kind: str) -> list[Any]:
    files = written.glob(f"{kind}-*")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def write(kind: str, *lines: object) -> None:
    with (directory() / f"{kind}-{os.getpid()}").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


class Whole:
    def __init__(self, config: pytest.Config, *, is_ours: bool) -> None:
        self.config = config
        self.is_ours = is_ours

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        there = {item.nodeid for item in items if _is_of_browsers(item)}
        yield
        chosen = {item.nodeid for item in items if _is_of_browsers(item)}
        write("wanted", *chosen)
        comparing = [item for item in items if item.path == HERE / COMPARING]
        items[:] = [item for item in items if item not in comparing]
        done = chosen | read("finished")
        # What is repeated was compared before, and the others' part of it is still there.
        if ONLY in os.environ or _is_everything(there, done):
            items += comparing
        elif comparing:
            self.config.hook.pytest_deselected(items=comparing)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        write("finished", nodeid)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        if self.is_ours and not is_worker():
            shutil.rmtree(os.environ.pop(DIRECTORY))


def _is_of_browsers(item: pytest.Item) -> bool:
    return item.path.parent == HERE and item.path.name != COMPARING


def _is_everything(there: set[str], done: set[str]) -> bool:
    """Of the tests collected, and of the files that might not have been."""
    files = {name.partition("::")[0].rpartition("/")[2] for name in there}
    # Whether a run of so many minutes takes everything depends on the machine.
    if UNTIL in os.environ:
        return False
    return there <= done and files == {file.name for file in HERE.glob("test_*.py")} - {COMPARING}


def is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


def pytest_configure(config: pytest.Config) -> None:
    """`manage.py test` gives the directory to its runs; any other run has its own."""
    is_ours = DIRECTORY not in os.environ
    if is_ours:
        os.environ[DIRECTORY] = tempfile.mkdtemp(prefix="countersign-used-")
    config.pluginmanager.register(Whole(config, is_ours=is_ours), "every-control")
