"""Quiet hours and mutes: until when a person's mail and pushes wait."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.utils import timezone

from notifications.events import ALWAYS, Event
from notifications.models import Delivery, DoNotDisturb

MUTE_MAX = timedelta(days=30)
# A call that expires in minutes and a stop cannot wait for the morning.
PASSES_QUIET_HOURS = {Event.APPROVAL_REMINDER, Event.STOP_BEGAN}
# What concerns the account itself, a use of break-glass, and what its owner asked for just now, is
# always sent.
ALWAYS_SENT = {*ALWAYS, Event.TEST}


def resumes_at(delivery: Delivery) -> datetime | None:
    """When the message may be sent to its reader; None: now."""
    person = delivery.reader
    if person is None or delivery.event in ALWAYS_SENT:
        return None
    chosen = DoNotDisturb.objects.select_related("person").filter(person=person).first()
    return waits_until(chosen, Event(delivery.event), timezone.now()) if chosen else None


def began_since(delivery: Delivery) -> bool:
    """Whether the reader of a message that waits may have wanted it as it was made: no quiet hours
    covered that moment. When a mute began is not known."""
    chosen = DoNotDisturb.objects.select_related("person").filter(person=delivery.reader).first()
    return chosen is not None and _quiet_until(chosen, delivery.created_at) is None


def waits_until(chosen: DoNotDisturb, event: Event, now: datetime) -> datetime | None:
    """When the person's mail and pushes on the event are sent again; None: they are sent now."""
    passes = event in PASSES_QUIET_HOURS
    ends = [chosen.muted_until, None if passes else _quiet_until(chosen, now)]
    return max((end for end in ends if end and end > now), default=None)


def waiting_people(event: Event, now: datetime) -> set[int]:
    """Ids of people whose mail and pushes on the event wait now."""
    everybody = DoNotDisturb.objects.select_related("person")
    return {one.person_id for one in everybody if waits_until(one, event, now)}


def _quiet_until(chosen: DoNotDisturb, now: datetime) -> datetime | None:
    if chosen.quiet_from is None or chosen.quiet_until is None:
        return None
    zone = ZoneInfo(chosen.person.time_zone)
    return quiet_end(chosen.quiet_from, chosen.quiet_until, zone, now)


def quiet_end(begins: time, ends: time, zone: ZoneInfo, now: datetime) -> datetime | None:
    """The end of the quiet hours that `now` lies in; they may go past midnight."""
    today = now.astimezone(zone).date()
    for day in (today - timedelta(days=1), today):
        last = day if begins < ends else day + timedelta(days=1)
        # In UTC: times of one zone are compared by the clock on the wall, which is turned back.
        begin = datetime.combine(day, begins, zone).astimezone(UTC)
        end = datetime.combine(last, ends, zone).astimezone(UTC)
        if begin <= now < end:
            return end
    return None
