"""Changes of on-call schedules, each with its entry, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.actors import By, acting
from accounts.models import User
from audit.services import record
from core.errors import CountersignError
from notifications import calendars, chat_formats
from notifications.models import (
    EscalationStep,
    OnCallCalendar,
    OnCallMember,
    OnCallOverride,
    OnCallSchedule,
)
from registry import managed


class ScheduleInUse(CountersignError):
    """A step of an escalation policy asks whoever is on call by it."""


@transaction.atomic
def save(schedule: OnCallSchedule, people: Sequence[User], *, by: By) -> None:
    """Stores the schedule with these people, in their order. Raises ManagedElsewhere."""
    _check_managed(schedule, by)
    schedule.save()
    schedule.members.all().delete()
    OnCallMember.objects.bulk_create(
        OnCallMember(schedule=schedule, place=n, person=one) for n, one in enumerate(people)
    )
    record(
        "on_call_schedule.saved",
        actor=acting(by),
        schedule=schedule.name,
        time_zone=schedule.time_zone,
        handover=f"{schedule.handover_weekday} {schedule.handover_at:%H:%M}",
        starts_on=schedule.starts_on.isoformat(),
        people=[one.username for one in people],
    )


@transaction.atomic
def save_with_calendar(schedule: OnCallSchedule, *, by: By, address: str = "") -> OnCallCalendar:
    """Stores the schedule, whose people its calendar names. Without an address it keeps its own.
    Raises ManagedElsewhere."""
    _check_managed(schedule, by)
    schedule.save()
    calendar = OnCallCalendar.objects.select_for_update().filter(schedule=schedule).first()
    calendar = calendar or OnCallCalendar(schedule=schedule)
    if address:
        calendars.set_address(calendar, address, chat_formats.hint(address))
    # Events without a time zone have another time in another one.
    calendar.whole_at = calendar.checked_at = None
    calendar.save()
    record(
        "on_call_schedule.saved",
        actor=acting(by),
        schedule=schedule.name,
        time_zone=schedule.time_zone,
        calendar=calendar.url,
    )
    return calendar


@transaction.atomic
def remove(schedule: OnCallSchedule, *, by: By) -> None:
    """Raises ScheduleInUse and ManagedElsewhere."""
    _check_managed(schedule, by)
    if EscalationStep.objects.filter(schedule=schedule).exists():
        raise ScheduleInUse(_("A step of an escalation policy uses this schedule."))
    record("on_call_schedule.removed", actor=acting(by), schedule=schedule.name)
    schedule.delete()


@transaction.atomic
def add_override(override: OnCallOverride, *, by: By) -> None:
    override.save(force_insert=True)
    _record("on_call_override.added", override, by)


@transaction.atomic
def remove_override(override: OnCallOverride, *, by: By) -> None:
    _record("on_call_override.removed", override, by)
    override.delete()


def _check_managed(schedule: OnCallSchedule, by: By) -> None:
    """By the name that it had, and by the one that it gets."""
    had = OnCallSchedule.objects.filter(pk=schedule.pk).values_list("name", flat=True)
    for name in {schedule.name, *had}:
        managed.check(managed.SCHEDULES, name, by=by)


def _record(action: str, override: OnCallOverride, by: By) -> None:
    record(
        action,
        actor=acting(by),
        schedule=override.schedule.name,
        person=override.person.username,
        begins_at=override.begins_at.isoformat(),
        ends_at=override.ends_at.isoformat(),
    )
