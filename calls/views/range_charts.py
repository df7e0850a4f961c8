"""Calls of each step as stacked bars, each a link to its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from calls.views import charts
from calls.views.charts import StackPart
from calls.views.range_figures import OUTCOMES, RangeFigures, TimeStep
from calls.views.time_ranges import TimeRange
from core.templatetags.console import duration


@dataclass(frozen=True, slots=True)
class StackedBar:
    step: TimeStep
    # Its hours or its days, in words.
    title: str
    label: str
    address: str
    x: float
    width: float
    parts: list[StackPart]

    @property
    def outcomes(self) -> list[tuple[str, int]]:
        return [
            (str(label), self.step.counts.by_outcome[name])
            for name, (label, _states) in OUTCOMES.items()
        ]


@dataclass(frozen=True, slots=True)
class StackedChart:
    bars: list[StackedBar]
    # From the top down, and from left to right.
    counts: list[int]
    times: list[str]
    legend: list[tuple[str, str]]
    # What a line of the durations' picture reaches at most, and its lines.
    slowest: float
    p50: list[str]
    p95: list[str]
    width: int = charts.WIDTH
    height: int = charts.HEIGHT
    middle: int = charts.HEIGHT // 2

    @property
    def half_slowest(self) -> float:
        return self.slowest / 2


def draw_stacks(figures: RangeFigures, chosen: TimeRange, **narrowed: str) -> StackedChart:
    """`narrowed`: further filters of the list of calls to which the bars lead."""
    steps = figures.steps
    most = charts.rounded_up(max(step.counts.calls for step in steps))
    slowest = max((step.durations.p95 or 0 for step in steps), default=0)
    return StackedChart(
        bars=[
            _bar(place, step, len(steps), most, chosen, narrowed)
            for place, step in enumerate(steps)
        ],
        counts=[most, most // 2, 0],
        times=_times(steps, chosen),
        legend=[(name, str(label)) for name, (label, _states) in OUTCOMES.items()],
        slowest=slowest,
        p50=charts.line([step.durations.p50 for step in steps], slowest),
        p95=charts.line([step.durations.p95 for step in steps], slowest),
    )


def _bar(
    place: int, step: TimeStep, of: int, most: int, chosen: TimeRange, narrowed: dict[str, str]
) -> StackedBar:
    counts = [(name, step.counts.by_outcome[name]) for name in OUTCOMES]
    title = _title(step, chosen)
    width = charts.WIDTH / of
    return StackedBar(
        step=step,
        title=title,
        label=_label(title, step),
        address=_address(step, narrowed),
        x=round(place * width, 1),
        width=round(width, 1),
        parts=charts.stack(place, of, counts, most),
    )


def _address(step: TimeStep, narrowed: dict[str, str]) -> str:
    times = {"since": step.since.isoformat(), "until": step.until.isoformat()}
    return f"{reverse('calls:list')}?{urlencode({**narrowed, **times})}"


def _title(step: TimeStep, chosen: TimeRange) -> str:
    if not chosen.of_days:
        return f"{_day(step.since)} {step.since:%H:%M} – {step.until:%H:%M}"
    if chosen.step.days == 1:
        return _day(step.since)
    return f"{_day(step.since)} – {_day(step.until - chosen.step / chosen.step.days)}"


def _label(title: str, step: TimeStep) -> str:
    counts = step.counts
    calls = ngettext("%(n)d call", "%(n)d calls", counts.calls) % {"n": counts.calls}
    errors = ngettext("%(n)d error", "%(n)d errors", counts.errors) % {"n": counts.errors}
    said = f"{title}: {calls}, {errors}"
    p95 = step.durations.p95
    return said if p95 is None else said + _(", p95 %s") % duration(p95)


def _times(steps: Sequence[TimeStep], chosen: TimeRange) -> list[str]:
    """The labels below the axis, from its beginning to now."""
    each = chosen.count // chosen.marks
    edges = [step.since for step in steps[::each]]
    return [*(_mark(edge, chosen) for edge in edges), _("now")]


def _mark(edge: datetime, chosen: TimeRange) -> str:
    return _day(edge) if chosen.names_days else f"{edge:%H:%M}"


def _day(at: datetime) -> str:
    return date_format(at, _("j M"))
