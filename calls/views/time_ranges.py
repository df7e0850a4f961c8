"""Stretches of time that end now, in steps that begin at round times of a person's own clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext_lazy as _

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """`count` steps of this length; an axis names every `count / marks`th of their edges."""

    name: str
    label: Any
    title: Any
    step: timedelta
    count: int
    marks: int

    def edges(self, now: datetime, zone: ZoneInfo) -> list[datetime]:
        """Where each step begins, and where the last one ends: at or after `now`."""
        if self.step >= DAY:
            return self._days(now.astimezone(zone), zone)
        midnight = datetime.combine(now.astimezone(zone).date(), time.min, zone)
        # As moments: hours of a clock that is put forward are not all as long.
        last = midnight.timestamp() + self._steps_to(now.timestamp() - midnight.timestamp())
        step = self.step.total_seconds()
        return [
            datetime.fromtimestamp(last - step * back, zone) for back in range(self.count, -1, -1)
        ]

    def _steps_to(self, seconds: float) -> float:
        step = self.step.total_seconds()
        return step * (seconds // step + 1)

    def _days(self, now: datetime, zone: ZoneInfo) -> list[datetime]:
        tomorrow = now.date() + DAY
        days = (tomorrow - self.step * back for back in range(self.count, -1, -1))
        return [datetime.combine(day, time.min, zone) for day in days]

    @property
    def of_days(self) -> bool:
        return self.step >= DAY

    @property
    def names_days(self) -> bool:
        """Does its axis name days, and not hours?"""
        return self.step * self.count > 2 * DAY


RANGES = {
    one.name: one
    for one in (
        TimeRange("1h", _("1 h"), _("Last hour"), timedelta(minutes=3), 20, 4),
        TimeRange("24h", _("24 h"), _("Last 24 hours"), timedelta(hours=1), 24, 4),
        TimeRange("7d", _("7 d"), _("Last 7 days"), timedelta(hours=6), 28, 4),
        TimeRange("30d", _("30 d"), _("Last 30 days"), DAY, 30, 5),
        TimeRange("90d", _("90 d"), _("Last 90 days"), 3 * DAY, 30, 5),
    )
}
USUAL = RANGES["24h"]


def range_named(text: str) -> TimeRange:
    """The range of this name; the usual one for any other text."""
    return RANGES.get(text, USUAL)
