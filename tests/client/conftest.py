from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.upstreams.recorder import Recorder


@pytest.fixture
def upstream() -> Iterator[Recorder]:
    with Recorder() as recorder:
        yield recorder
