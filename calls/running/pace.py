"""How fast something goes forward: over its last steps, not since its beginning."""

from __future__ import annotations

import math
from collections import deque

# Fewer steps, or within less time, say nothing of those to come.
LEAST_STEPS, LEAST_S = 5, 3.0
WINDOW_S = 30.0
# Steps closer to each other are one.
APART_S = 0.2


class Pace:
    """Steps are given with a monotonic time."""

    def __init__(self) -> None:
        self._steps: deque[tuple[float, float]] = deque()

    def add(self, at: float, progress: float) -> None:
        steps = self._steps
        if len(steps) > 1 and at - steps[-2][0] < APART_S:
            steps.pop()
        steps.append((at, progress))
        while len(steps) > LEAST_STEPS and steps[1][0] <= at - WINDOW_S:
            steps.popleft()

    @property
    def rate(self) -> float | None:
        """A second; None while there is nothing to say."""
        if len(self._steps) < LEAST_STEPS:
            return None
        (since, begin), (at, end) = self._steps[0], self._steps[-1]
        if at - since < LEAST_S:
            return None
        rate = (end - begin) / (at - since)
        return rate if math.isfinite(rate) else None
