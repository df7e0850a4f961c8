"""How far a call is, in figures that mean something to people, whatever its server said."""

from __future__ import annotations

from typing import NamedTuple

# A terabyte in bytes. Beyond it, a figure is longer than what it says.
FIGURE_MAX = 1e12
SLOWEST = 0.05
LEAST_LEFT_S, LONGEST_LEFT_S = 1, 7 * 24 * 3600


class ProgressFigures(NamedTuple):
    """Each is None where there is nothing sensible to say; `rate` is for a second."""

    done: float | None = None
    total: float | None = None
    percent: int | None = None
    rate: float | None = None
    left_s: int | None = None


def of(done: float | None, total: float | None, rate: float | None = None) -> ProgressFigures:
    if done is None or done < 0:
        return ProgressFigures()
    has_total = total is not None and total > 0
    shown_rate = rate if rate is not None and SLOWEST <= rate <= FIGURE_MAX else None
    return ProgressFigures(
        done=round(done, 2) if done <= FIGURE_MAX else None,
        total=round(total, 2) if has_total and total is not None and total <= FIGURE_MAX else None,
        percent=int(100 * min(1.0, done / total)) if has_total and total is not None else None,
        rate=shown_rate if done <= FIGURE_MAX else None,
        left_s=_left_s(done, total, rate) if has_total and total is not None else None,
    )


def _left_s(done: float, total: float, rate: float | None) -> int | None:
    if rate is None or rate <= 0:
        return None
    left = (total - done) / rate
    return round(left) if LEAST_LEFT_S <= left <= LONGEST_LEFT_S else None
