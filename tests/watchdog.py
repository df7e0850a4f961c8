"""Ends a test that hangs also where it has failed before: pytest's own watch ends with the failure,
and a fixture that then waits for ever would hold up the whole run. A moment before a test is ended,
it is named, with what its event loops wait for, which no thread's stack shows.
"""

import asyncio
import faulthandler
import os
import threading
from collections.abc import Generator

import pytest

# Loaded before pytest captures what goes to stderr.
STDERR = os.dup(2)
A_MOMENT_BEFORE = 0.95


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not (seconds := limit(item)):
        return (yield)
    watch = threading.Timer(seconds * A_MOMENT_BEFORE, describe, [item.nodeid])
    watch.daemon = True
    watch.start()
    try:
        return (yield)
    finally:
        watch.cancel()


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """After pytest's own, which takes the watch away."""
    if seconds := limit(node):
        ends = bool(node.config.getini("faulthandler_exit_on_timeout"))
        faulthandler.dump_traceback_later(seconds, file=STDERR, exit=ends)


def limit(node: pytest.Item | pytest.Collector) -> float:
    return float(node.config.getini("faulthandler_timeout") or 0)


def describe(test: str) -> None:
    with open(STDERR, "w", closefd=False) as stderr:
        print(f"\nHangs: {test}", file=stderr)
        # Of whichever loops there are; another thread's may change while it is read.
        for task in list(asyncio.tasks._all_tasks):  # type: ignore[attr-defined]
            if not task.done():
                print(task, file=stderr)
                task.print_stack(file=stderr)
