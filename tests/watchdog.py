"""Ends a test that hangs also where it has failed before: pytest's own watch ends with the failure,
and a fixture that then waits for ever would hold up the whole run."""

import faulthandler
import os

import pytest

# Loaded before pytest captures what goes to stderr.
STDERR = os.dup(2)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """After pytest's own, which takes the watch away."""
    seconds = float(node.config.getini("faulthandler_timeout") or 0)
    if seconds:
        ends = bool(node.config.getini("faulthandler_exit_on_timeout"))
        faulthandler.dump_traceback_later(seconds, file=STDERR, exit=ends)
