"""On-call schedules: a weekly rotation or a calendar, and overrides for a time."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any, NamedTuple, Self

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from core.ids import uuid7


class Weekday(models.IntegerChoices):
    MONDAY = 0, _("Monday")
    TUESDAY = 1, _("Tuesday")
    WEDNESDAY = 2, _("Wednesday")
    THURSDAY = 3, _("Thursday")
    FRIDAY = 4, _("Friday")
    SATURDAY = 5, _("Saturday")
    SUNDAY = 6, _("Sunday")


class OnCallSchedule(models.Model):
    """People who are on call: in turn, a week each, by the clock of one time zone; or as a calendar
    says, which then has no members."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(_("name"), max_length=60, unique=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    handover_weekday = models.PositiveSmallIntegerField(
        _("hand-over day"), choices=Weekday, default=Weekday.MONDAY
    )
    handover_at = models.TimeField(_("hand-over time"))
    # The first hand-over on or after this day begins the first person's week.
    starts_on = models.DateField(_("starts on"))
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        default_permissions = ("change", "view")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def for_calendar(cls, time_zone: str) -> Self:
        """One that is to take its people from a calendar: its hand-overs do not count."""
        return cls(time_zone=time_zone, handover_at=time(), starts_on=timezone.now().date())


class OnCallMember(models.Model):
    """A person's place in the rotation."""

    schedule = models.ForeignKey(OnCallSchedule, models.CASCADE, related_name="members")
    place = models.PositiveSmallIntegerField()
    person = models.ForeignKey(User, models.CASCADE, related_name="+")

    class Meta:
        default_permissions = ()
        ordering = ["place"]
        constraints = [
            models.UniqueConstraint(
                name="notifications_one_person_a_place", fields=["schedule", "place"]
            )
        ]

    def __str__(self) -> str:
        return f"{self.place}: {self.person_id}"


class OnCallOverride(models.Model):
    """A person who is on call for a time, whoever's week it is. The newest one counts."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    schedule = models.ForeignKey(OnCallSchedule, models.CASCADE, related_name="overrides")
    person = models.ForeignKey(User, models.CASCADE, related_name="+")
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        ordering = ["begins_at", "id"]
        constraints = [
            models.CheckConstraint(
                name="notifications_override_ends_later", condition=Q(ends_at__gt=F("begins_at"))
            )
        ]

    def __str__(self) -> str:
        return f"{self.person_id} from {self.begins_at}"


class CalendarShift(NamedTuple):
    """An event of a calendar, and whoever it may mean, in that order."""

    begins_at: datetime
    ends_at: datetime
    names: tuple[str, ...]

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        begins, ends = (datetime.fromisoformat(given[name]) for name in ("begins_at", "ends_at"))
        return cls(begins, ends, tuple(given["names"]))

    def as_json(self) -> dict[str, Any]:
        return {
            "begins_at": self.begins_at.isoformat(),
            "ends_at": self.ends_at.isoformat(),
            "names": list(self.names),
        }


class OnCallCalendar(models.Model):
    """The calendar that a schedule takes its people from, as it was read last."""

    schedule = models.OneToOneField(
        OnCallSchedule, models.CASCADE, primary_key=True, related_name="calendar"
    )
    # The whole address is a secret: only its host and its last characters.
    url = models.CharField(max_length=500)
    sealed_url = models.BinaryField(editable=False)
    shifts = models.JSONField(default=list)
    # When the address was asked last, when it answered well, and when it sent the whole calendar.
    checked_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)
    whole_at = models.DateTimeField(null=True)
    etag = models.CharField(max_length=200, blank=True)
    failing_since = models.DateTimeField(null=True)
    # English; pages translate it.
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"calendar of {self.schedule_id}"

    def parsed_shifts(self) -> list[CalendarShift]:
        return [CalendarShift.of(one) for one in self.shifts]
