"""Pictures of numbers as plain geometry, which a template draws as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 120
GAP = 4


@dataclass(frozen=True, slots=True)
class ChartBar:
    """`lower` is the height of the part of it that counts as wrong."""

    x: float
    y: float
    width: float
    height: float
    lower: float
    label: str

    @property
    def lower_y(self) -> float:
        return HEIGHT - self.lower


def bars(values: Sequence[tuple[int, float, str]]) -> list[ChartBar]:
    """Of (how many, share that went wrong, what it says); the largest fills the height."""
    most = max((count for count, _share, _label in values), default=0)
    step = WIDTH / max(len(values), 1)
    return [
        _bar(n * step + GAP / 2, step - GAP, HEIGHT * count / most if most else 0, share, label)
        for n, (count, share, label) in enumerate(values)
    ]


def _bar(x: float, width: float, height: float, share: float, label: str) -> ChartBar:
    # One call among thousands is still seen.
    height = round(max(height, 2.0) if height else 0.0, 1)
    return ChartBar(
        round(x, 1),
        round(HEIGHT - height, 1),
        round(width, 1),
        height,
        round(height * share, 1),
        label,
    )


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
