"""A run that has so many minutes: what has not begun by then is left out, and named.

Files come in an order that each commit draws anew, so that runs which cannot take everything take
everything by turns.
"""

import os
import time
from hashlib import sha256
from pathlib import Path

import pytest

from tests.outcomes import DIRECTORY, ONLY

# Seconds since 1970 at which no test begins any more, and what the order is drawn from.
UNTIL, ORDER = "TESTS_UNTIL", "TESTS_ORDER"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if ORDER in os.environ and ONLY not in os.environ:
        items.sort(key=lambda item: _place(item.path))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if UNTIL in os.environ and ONLY not in os.environ and time.time() > float(os.environ[UNTIL]):
        file = Path(os.environ[DIRECTORY]) / f"left-{os.getpid()}"
        with file.open("a") as left:
            left.write(f"{item.nodeid}\n")
        pytest.skip("not begun in time")


def _place(path: Path) -> str:
    """Tests of one file stay together, in their order."""
    return sha256(f"{os.environ[ORDER]} {path.name}".encode()).hexdigest()
