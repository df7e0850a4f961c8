"""The error of a condition that cannot be judged."""

from __future__ import annotations

from core.errors import CountersignError


class Undecided(CountersignError):
    """The condition says neither yes nor no of this call; says why."""
