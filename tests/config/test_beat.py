"""Celery's clock is asked to end at any moment."""

import signal
import sys
from collections.abc import Iterator

import pytest

from config.beat import ends_later


@pytest.fixture(autouse=True)
def celerys_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_statement_is_not_left_halfway() -> None:
    done = []

    def statement() -> None:
        with ends_later():
            signal.raise_signal(signal.SIGTERM)
            done.append("the rest")

    with pytest.raises(SystemExit):
        statement()

    assert done == ["the rest"]


def test_afterwards_it_ends_at_once() -> None:
    with ends_later():
        pass

    with pytest.raises(SystemExit):
        signal.raise_signal(signal.SIGTERM)
