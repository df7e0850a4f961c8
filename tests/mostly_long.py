"""Values of a parameter, of which the short command has some."""

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_long(values: Iterable[Any], *short: Any) -> list[Any]:
    """The others are for `--long`."""
    return [one if one in short else pytest.param(one, marks=pytest.mark.long) for one in values]
