"""On-call calendars: fetched every few minutes, and read by a process of its own.

A calendar that cannot be fetched or read leaves the shifts that were read last.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import orjson
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from audit.models import ClockTime
from audit.services import SYSTEM, record
from core import seal
from core.english import gettext as _
from core.errors import CountersignError
from core.guarded_http import RequestFailed, fetch
from core.http_connection import Fields
from core.sealed_fields import SealedField
from notifications.models import OnCallCalendar
from notifications.schedule_models import CalendarShift

PURPOSE = "calendar address"
READER = Path(__file__).with_name("calendar_reader.py")
EVERY = timedelta(minutes=5)
# Of a calendar: for so long, and read anew at least so often, since time goes on.
AHEAD = timedelta(weeks=9)
BEHIND = timedelta(days=1)
WHOLE_EVERY = timedelta(hours=12)
READ_WITHIN_S = 20
UNCHANGED = 304
ETAG_MAX = 200
REASONS = {
    "broken": _("It is no valid calendar."),
    "other": _("It is no calendar (iCalendar, RFC 5545)."),
    "often": _("It has an event that is repeated more often than daily."),
    "events": _("It has more than 5,000 events."),
    "shifts": _("It has more than 1,000 shifts in the next nine weeks."),
    "zone": _("It names a time zone that it does not define."),
    "late": _("It takes too long to read."),
}


class CalendarUnreadable(CountersignError):
    """Says why, without the address."""


class FetchedCalendar(NamedTuple):
    text: str
    etag: str


def read_due() -> None:
    while calendar := _claim():
        read_now(calendar)


@transaction.atomic
def _claim() -> OnCallCalendar | None:
    """Each is read by one process at a time."""
    due = Q(checked_at=None) | Q(checked_at__lte=ClockTime() - EVERY)
    found = OnCallCalendar.objects.filter(due).select_for_update(skip_locked=True)
    calendar = found.order_by(F("checked_at").asc(nulls_first=True), "pk").first()
    if calendar:
        calendar.checked_at = timezone.now()
        calendar.save(update_fields=["checked_at"])
    return calendar


def read_now(calendar: OnCallCalendar) -> None:
    """Fetches and reads it; its row says afterwards how that went."""
    now = timezone.now()
    try:
        fetched = _fetch(calendar, now)
        shifts = _read(fetched.text, calendar.schedule.time_zone, now) if fetched else None
    except CalendarUnreadable as error:
        _keep(calendar, str(error), now)
        return
    _store(calendar, fetched, shifts, now)


def _fetch(calendar: OnCallCalendar, now: datetime) -> FetchedCalendar | None:
    """None if it is the one that was read last."""
    url = address(calendar)
    is_fresh = calendar.whole_at is not None and now - calendar.whole_at < WHOLE_EVERY
    known = {"If-None-Match": calendar.etag} if is_fresh and calendar.etag else {}
    try:
        reply = fetch("GET", url, {"Accept": "text/calendar", **known})
    except RequestFailed as error:
        raise CalendarUnreadable(str(error).replace(url, "…")) from None
    if known and reply.status == UNCHANGED:
        return None
    if reply.status != 200:
        said = _("The address answered with status %(status)s.") % {"status": reply.status}
        raise CalendarUnreadable(said)
    return FetchedCalendar(_text(reply.body), _etag(reply.headers))


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise CalendarUnreadable(REASONS["other"]) from None


def _etag(headers: Fields) -> str:
    given = headers.get(b"etag")
    return given if len(given) <= ETAG_MAX and given.isprintable() else ""


def _read(text: str, zone: str, now: datetime) -> list[CalendarShift]:
    """Raises CalendarUnreadable."""
    given = {"text": text, "zone": zone, "begins_at": now - BEHIND, "ends_at": now + AHEAD}
    try:
        # Our own program; no word of a stranger is in its command.
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", str(READER)],
            input=orjson.dumps(given),
            capture_output=True,
            timeout=READ_WITHIN_S,
            check=True,
            env={},
        )
    except subprocess.SubprocessError:
        raise CalendarUnreadable(REASONS["late"]) from None
    answer = orjson.loads(done.stdout)
    if why := answer.get("error"):
        raise CalendarUnreadable(REASONS[why])
    return [CalendarShift.of(one) for one in answer["shifts"]]


@transaction.atomic
def _keep(known: OnCallCalendar, why: str, now: datetime) -> None:
    """Keeps the last shifts; the first failure of several is an entry."""
    calendar = _lock(known)
    if calendar is None:
        return
    if calendar.failing_since is None:
        calendar.failing_since = now
        details = _details(calendar)
        record("on_call_calendar.failed", actor=SYSTEM, reason=why, **details)
    calendar.error, calendar.checked_at = why[:500], now
    calendar.save(update_fields=["failing_since", "error", "checked_at"])


@transaction.atomic
def _store(
    known: OnCallCalendar,
    fetched: FetchedCalendar | None,
    shifts: list[CalendarShift] | None,
    now: datetime,
) -> None:
    calendar = _lock(known)
    if calendar is None:
        return
    if calendar.failing_since:
        record("on_call_calendar.recovered", actor=SYSTEM, **_details(calendar))
    if fetched is not None and shifts is not None:
        if _is_changed(calendar, shifts, now):
            details = {**_details(calendar), "shifts": len(shifts)}
            record("on_call_calendar.changed", actor=SYSTEM, **details)
        calendar.etag, calendar.whole_at = fetched.etag, now
        calendar.shifts = [one.as_json() for one in shifts]
    calendar.read_at = calendar.checked_at = now
    calendar.failing_since, calendar.error = None, ""
    calendar.save()


def _lock(known: OnCallCalendar) -> OnCallCalendar | None:
    """None if it was removed or has another address since it was fetched."""
    found = OnCallCalendar.objects.select_for_update(of=["self"]).filter(pk=known.pk)
    calendar = found.select_related("schedule").first()
    is_same = calendar and bytes(calendar.sealed_url) == bytes(known.sealed_url)
    return calendar if is_same else None


def _details(calendar: OnCallCalendar) -> dict[str, object]:
    return {"schedule": calendar.schedule.name, "url": calendar.url}


def _is_changed(calendar: OnCallCalendar, shifts: list[CalendarShift], now: datetime) -> bool:
    """In the time that both have: what time itself brings is no change."""
    if calendar.whole_at is None:
        return True
    end = calendar.whole_at + AHEAD

    def common(found: list[CalendarShift]) -> list[CalendarShift]:
        return [one for one in found if one.ends_at > now and one.begins_at < end]

    return common(calendar.parsed_shifts()) != common(shifts)


def set_address(calendar: OnCallCalendar, url: str, shown: str) -> None:
    """Seals it; nothing of the former one is left."""
    calendar.url = shown
    calendar.sealed_url = seal.seal(PURPOSE, url.encode(), place=place(calendar))
    calendar.etag, calendar.whole_at, calendar.checked_at = "", None, None


def address(calendar: OnCallCalendar) -> str:
    """The whole address, a secret. Raises CalendarUnreadable."""
    try:
        return seal.unseal(PURPOSE, bytes(calendar.sealed_url), place=place(calendar)).decode()
    except seal.Unsealable as error:
        said = _("Its address cannot be opened here: set it again.")
        raise CalendarUnreadable(said) from error


def place(calendar: OnCallCalendar) -> str:
    return f"notifications_oncallcalendar|{calendar.schedule_id}"


SEALED = (SealedField(OnCallCalendar, "sealed_url", PURPOSE, place),)
