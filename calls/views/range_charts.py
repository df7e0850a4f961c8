"""Calls of each step as stacked bars, each a link to its calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.models import User
from calls.views import charts
from calls.views.charts import StackPart
from calls.views.range_figures import OUTCOMES, RangeFigures, TimeStep
from calls.views.time_ranges import RANGES, TimeRange, range_named
from core.templatetags.console import duration


class ChartKind(NamedTuple):
    """The words of a chart; `outcomes`: the parts of a bar from the bottom."""

    title: Any
    unit: Any
    durations: Any
    outcomes: dict[str, Any]


CALLS = ChartKind(
    gettext_lazy("Calls by outcome"),
    gettext_lazy("Calls"),
    gettext_lazy("Time taken"),
    {name: label for name, (label, _states) in OUTCOMES.items()},
)


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
    # By their labels.
    outcomes: list[tuple[str, int]]


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
    kind: ChartKind
    width: int = charts.WIDTH
    height: int = charts.HEIGHT
    middle: int = charts.HEIGHT // 2

    @property
    def half_slowest(self) -> float:
        return self.slowest / 2


def draw_range(
    name: str,
    person: User,
    read: Callable[[Sequence[datetime], datetime], RangeFigures],
    listed: dict[str, str] | None,
    kind: ChartKind = CALLS,
) -> dict[str, Any]:
    """The context of `overview/charts.html`: what `read` finds between the edges of the range of
    this name. `listed`: further filters of the list of calls to which the bars lead, None for
    bars that lead nowhere."""
    chosen = range_named(name)
    zone = ZoneInfo(person.time_zone or "UTC")
    now = timezone.now()
    figures = read(chosen.edges(now, zone), now)
    return {
        "ranges": RANGES.values(),
        "range": chosen,
        "zone": zone,
        "figures": figures,
        "chart": draw_stacks(figures, chosen, listed, kind),
    }


def draw_stacks(
    figures: RangeFigures, chosen: TimeRange, listed: dict[str, str] | None, kind: ChartKind
) -> StackedChart:
    steps = figures.steps
    most = charts.rounded_up(max(step.counts.calls for step in steps))
    slowest = charts.rounded_up_time(max((step.durations.p95 or 0 for step in steps), default=0))
    return StackedChart(
        bars=[
            _bar(place, step, len(steps), most, chosen, listed, kind)
            for place, step in enumerate(steps)
        ],
        counts=[most, most // 2, 0],
        times=_times(steps, chosen),
        legend=[(name, str(label)) for name, label in kind.outcomes.items()],
        kind=kind,
        slowest=slowest,
        p50=charts.line([step.durations.p50 for step in steps], slowest),
        p95=charts.line([step.durations.p95 for step in steps], slowest),
    )


def _bar(
    place: int,
    step: TimeStep,
    of: int,
    most: int,
    chosen: TimeRange,
    listed: dict[str, str] | None,
    kind: ChartKind,
) -> StackedBar:
    counts = [(name, step.counts.by_outcome[name]) for name in kind.outcomes]
    title = _title(step, chosen)
    width = charts.WIDTH / of
    return StackedBar(
        step=step,
        title=title,
        label=_label(title, step, counts, kind),
        address="" if listed is None else _address(step, listed),
        x=round(place * width, 1),
        width=round(width, 1),
        parts=charts.stack(place, of, counts, most),
        outcomes=[(str(kind.outcomes[name]), n) for name, n in counts],
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


def _label(title: str, step: TimeStep, counts: Sequence[tuple[str, int]], kind: ChartKind) -> str:
    if kind is not CALLS:
        return f"{title}: " + ", ".join(f"{kind.outcomes[name]} {n}" for name, n in counts)
    calls = ngettext("%(n)d call", "%(n)d calls", step.counts.calls) % {"n": step.counts.calls}
    errors = ngettext("%(n)d error", "%(n)d errors", step.counts.errors) % {"n": step.counts.errors}
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
