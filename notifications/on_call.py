"""People on call: a rotation by the clock on the wall, or a calendar; and the overrides over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple, Protocol, Self
from zoneinfo import ZoneInfo

from notifications.calendar_names import PeopleByName
from notifications.schedule_models import CalendarShift, OnCallSchedule

WEEK = timedelta(days=7)


class OnCallShift(NamedTuple):
    """The person on call from one moment to another; None: a gap."""

    begins_at: datetime
    ends_at: datetime
    person: int | None


class Rotation(NamedTuple):
    """People in order, a week each; hand-overs keep the local time when clocks change."""

    people: Sequence[int]
    zone: ZoneInfo
    weekday: int
    at: time
    starts_on: date

    def person_at(self, now: datetime) -> int | None:
        week = self._week(now)
        return self.people[week % len(self.people)] if self.people and week >= 0 else None

    def handover(self, week: int) -> datetime:
        """The moment at which that week begins. A local time that is left out when the clock is
        put forward is an hour later; one that comes twice is the first."""
        days = (self.weekday - self.starts_on.weekday()) % 7 + 7 * week
        day = self.starts_on + timedelta(days=days)
        return datetime.combine(day, self.at, self.zone).astimezone(UTC)

    def handovers(self, begin: datetime, end: datetime) -> Iterator[datetime]:
        """Those between the two moments."""
        week = max(self._week(begin) + 1, 0)
        while (moment := self.handover(week)) < end:
            yield moment
            week += 1

    def _week(self, now: datetime) -> int:
        """Below 0 before the rotation starts."""
        week = (now - self.handover(0)) // WEEK
        # Clocks that were changed since make it one off at most.
        while self.handover(week) > now:
            week -= 1
        while self.handover(week + 1) <= now:
            week += 1
        return week


class RegularShifts(Protocol):
    """The people on call before any override."""

    def person_at(self, now: datetime) -> int | None: ...

    def handovers(self, begin: datetime, end: datetime) -> Iterator[datetime]: ...


class CalendarShifts:
    """Events of a calendar. Of several at a time the one counts that began last, then the one that
    ends first; an event that names nobody does not count."""

    def __init__(self, shifts: Sequence[CalendarShift], people: PeopleByName) -> None:
        named = ((one.begins_at, one.ends_at, people.first(one.names)) for one in shifts)
        known = [OnCallShift(*one) for one in named if one[2]]
        self._shifts = sorted(known, key=lambda one: (one.begins_at, -one.ends_at.timestamp()))

    def person_at(self, now: datetime) -> int | None:
        covering = [one.person for one in self._shifts if one.begins_at <= now < one.ends_at]
        return covering[-1] if covering else None

    def handovers(self, begin: datetime, end: datetime) -> Iterator[datetime]:
        edges = {at for one in self._shifts for at in (one.begins_at, one.ends_at)}
        return iter(sorted(at for at in edges if begin < at < end))


class Override(NamedTuple):
    begins_at: datetime
    ends_at: datetime
    person: int

    def covers(self, now: datetime) -> bool:
        return self.begins_at <= now < self.ends_at


@dataclass(frozen=True)
class OnCallPlan:
    """A schedule as it was read. Of several overrides the last one counts."""

    regular: RegularShifts
    overrides: Sequence[Override]

    @classmethod
    def of(cls, schedule: OnCallSchedule) -> Self:
        newest_last = sorted(schedule.overrides.all(), key=lambda one: one.pk)
        return cls(
            _regular(schedule),
            [Override(one.begins_at, one.ends_at, one.person_id) for one in newest_last],
        )

    def person_at(self, now: datetime) -> int | None:
        covering = [one.person for one in self.overrides if one.covers(now)]
        return covering[-1] if covering else self.regular.person_at(now)

    def shifts(self, begin: datetime, end: datetime) -> list[OnCallShift]:
        """The shifts between the two moments, without overlaps and with gaps as such."""
        edges = {begin, *self.regular.handovers(begin, end)}
        for one in self.overrides:
            edges |= {at for at in (one.begins_at, one.ends_at) if begin < at < end}
        ordered = [*sorted(edges), end]
        found: list[OnCallShift] = []
        for begins, ends in pairwise(ordered):
            person = self.person_at(begins)
            if found and found[-1].person == person:
                found[-1] = found[-1]._replace(ends_at=ends)
            else:
                found.append(OnCallShift(begins, ends, person))
        return found


def _regular(schedule: OnCallSchedule) -> RegularShifts:
    if calendar := getattr(schedule, "calendar", None):
        shifts = calendar.parsed_shifts()
        return CalendarShifts(shifts, PeopleByName.of(shifts))
    return Rotation(
        [one.person_id for one in schedule.members.all()],
        ZoneInfo(schedule.time_zone),
        schedule.handover_weekday,
        schedule.handover_at,
        schedule.starts_on,
    )


def person_on_call(schedule: OnCallSchedule, now: datetime) -> int | None:
    """The id of whoever is on call; None: nobody."""
    return OnCallPlan.of(schedule).person_at(now)
