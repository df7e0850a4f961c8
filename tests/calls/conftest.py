"""The gateway's house, with a server that may fail."""

from collections.abc import Iterator

import pytest

from tests.calls.flaky import Flaky
from tests.gateway.conftest import bob, furniture, http, play, rule, scout, toolset, upstream
from tests.processes import Stack

__all__ = ["bob", "furniture", "http", "play", "rule", "scout", "toolset", "upstream"]


@pytest.fixture(scope="session")
def running_recorder() -> Iterator[Flaky]:
    with Flaky() as recorder:
        yield recorder


@pytest.fixture
def own_stack(stack: Stack, own_stack: Stack) -> Stack:
    """The shared worker would take calls that these tests mean for their own."""
    stack.end_worker()
    return own_stack
