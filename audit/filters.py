"""What the audit list's filters mean. All of them live in the address, to be kept and shared."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from audit.models import Entry, EntryQuerySet

RANGES = {
    "1h": (_("Last hour"), timedelta(hours=1)),
    "24h": (_("Last 24 hours"), timedelta(hours=24)),
    "7d": (_("Last 7 days"), timedelta(days=7)),
    "30d": (_("Last 30 days"), timedelta(days=30)),
}
NAMES = ("person", "agent", "tool", "state", "range", "since", "until")


def entries(filters: Mapping[str, str], zone: ZoneInfo) -> EntryQuerySet:
    found = Entry.objects.all()
    if person := filters.get("person"):
        # What a person did, and what was done on their behalf.
        found = found.filter(Q(person=person) | Q(actor_kind="person", actor=person))
    if agent := filters.get("agent"):
        found = found.filter(agent=agent)
    if tool := filters.get("tool"):
        found = found.filter(tool=tool)
    if state := filters.get("state"):
        found = found.filter(to_state=state)
    return _in_time(found, filters, zone)


def _in_time(found: EntryQuerySet, filters: Mapping[str, str], zone: ZoneInfo) -> EntryQuerySet:
    if span := RANGES.get(filters.get("range", "")):
        return found.filter(at__gte=timezone.now() - span[1])
    if since := _moment(filters.get("since", ""), zone):
        found = found.filter(at__gte=since)
    if until := _moment(filters.get("until", ""), zone):
        found = found.filter(at__lt=until)
    return found


def _moment(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=zone) if moment and moment.tzinfo is None else moment
