"""Pictures of numbers as plain geometry, which a template draws as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 120
GAP = 4


def line(values: Sequence[float | None], most: float) -> list[str]:
    """The points of polylines, broken where there is nothing to show."""
    step = WIDTH / max(len(values), 1)
    pieces: list[list[tuple[float, float]]] = [[]]
    for n, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            y = HEIGHT - (HEIGHT - GAP) * value / most if most else HEIGHT
            pieces[-1].append((n * step + step / 2, y))
    drawn = [_dash(piece[0], step) if len(piece) == 1 else piece for piece in pieces if piece]
    return [" ".join(f"{x:.1f},{y:.1f}" for x, y in piece) for piece in drawn]


def _dash(point: tuple[float, float], step: float) -> list[tuple[float, float]]:
    """A day alone, as wide as its bar: a line of one point is not seen."""
    x, y = point
    half = (step - GAP) / 2
    return [(x - half, y), (x + half, y)]


@dataclass(frozen=True, slots=True)
class StackPart:
    """One part of a bar; `name` says what of."""

    name: str
    x: float
    y: float
    width: float
    height: float


def stack(place: int, of: int, counts: Sequence[tuple[str, int]], most: int) -> list[StackPart]:
    """The bar at this place among so many, from the bottom up; `most` would fill the height."""
    step = WIDTH / of
    parts: list[StackPart] = []
    bottom = float(HEIGHT)
    for name, count in counts:
        if not count:
            continue
        height = max(HEIGHT * count / most, 1.5)
        bottom -= height
        x, y = place * step + GAP / 2, max(bottom, 0)
        parts.append(
            StackPart(name, round(x, 1), round(y, 1), round(step - GAP, 1), round(height, 1))
        )
    return parts


def rounded_up(most: int) -> int:
    """The end of an axis whose middle is a whole number too."""
    power = 1
    while most > 10 * power:
        power *= 10
    return next(step * power for step in (2, 4, 6, 8, 10) if most <= step * power)


def rounded_up_time(seconds: float) -> float:
    """The end of an axis of times, in seconds; 0 where nothing was timed."""
    return rounded_up(math.ceil(seconds * 1000)) / 1000 if seconds else 0
