"""Reads a stranger's calendar in a process of its own, which may be ended at any time.

Standard input has a JSON object (`text`, `zone`, `begins_at`, `ends_at`), standard output gets
`shifts` or `error`. Nothing of the product is imported, and the environment holds no secret.
Source: RFC 5545.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events

CPU_S = 10
MEMORY_BYTES = 1 << 30
EVENTS_MAX = 5000
SHIFTS_MAX = 1000
NAMES_MAX = 20
NAME_MAX = 254

# A line that goes on after a break and a space (3.1); the library also takes several breaks.
_FOLD = re.compile(r"(?:\r?\n)+[ \t]")
_OFTEN = re.compile(
    r"^(?:RRULE|EXRULE)\b.*(?:FREQ=(?:SECONDLY|MINUTELY|HOURLY)|BY(?:MINUTE|SECOND)=[^;\r\n]*,)",
    re.IGNORECASE | re.MULTILINE,
)
_EVENT = re.compile(r"^BEGIN:VEVENT\s*$", re.IGNORECASE | re.MULTILINE)
_ADDRESS = re.compile(r"[^\s<>()\[\],;:\"']+@[^\s<>()\[\],;:\"']+")
_WORD = re.compile(r"[\w.@+-]+")


class CalendarRejected(Exception):
    """Its text is a key of `notifications.calendars.REASONS`."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    json.dump(answer(json.load(sys.stdin)), sys.stdout)


def answer(given: dict[str, str]) -> dict[str, object]:
    try:
        return {"shifts": read(given)}
    except CalendarRejected as error:
        return {"error": str(error)}
    except Exception:
        # The library has many ways to say so.
        return {"error": "broken"}


def read(given: dict[str, str]) -> list[dict[str, Any]]:
    """Raises CalendarRejected."""
    begin, end = (datetime.fromisoformat(given[name]) for name in ("begins_at", "ends_at"))
    calendar = _parse(given["text"])
    events = recurring_ical_events.of(calendar).between(begin, end)
    shifts = list(_shifts(events, ZoneInfo(given["zone"])))
    if len(shifts) > SHIFTS_MAX:
        raise CalendarRejected("shifts")
    return sorted(shifts, key=lambda one: (one["begins_at"], one["ends_at"], one["names"]))


def _parse(text: str) -> icalendar.Calendar:
    whole = _FOLD.sub("", text)
    if not whole.lstrip("\ufeff \r\n").upper().startswith("BEGIN:VCALENDAR"):
        raise CalendarRejected("other")
    if _OFTEN.search(whole):
        raise CalendarRejected("often")
    if len(_EVENT.findall(whole)) > EVENTS_MAX:
        raise CalendarRejected("events")
    calendar = icalendar.Calendar.from_ical(text.lstrip("\ufeff"))
    assert isinstance(calendar, icalendar.Calendar)
    for event in calendar.walk("VEVENT"):
        _check(event)
    return calendar


def _check(event: Any) -> None:
    """No event is left out without a word, and none is read in another time zone."""
    if event.errors or "DTSTART" not in event or not all(map(_ends, _rules(event))):
        raise CalendarRejected("broken")
    for name in ("DTSTART", "DTEND"):
        known = event.get(name)
        if known is not None and "TZID" in known.params and _is_floating(known.dt):
            raise CalendarRejected("zone")


def _rules(event: Any) -> list[Any]:
    found = event.get("RRULE", [])
    return found if isinstance(found, list) else [found]


def _ends(rule: Any) -> bool:
    """Whether it goes on at all: the library never ends with one that does not."""
    return all(int(interval) > 0 for interval in rule.get("INTERVAL", []))


def _is_floating(moment: date) -> bool:
    return isinstance(moment, datetime) and moment.tzinfo is None


def _shifts(events: Iterable[Any], zone: ZoneInfo) -> Iterator[dict[str, Any]]:
    for event in events:
        begins, ends = _moment(event.start, zone), _moment(event.end, zone)
        if begins < ends and str(event.get("STATUS", "")).upper() != "CANCELLED":
            yield {
                "begins_at": begins.isoformat(),
                "ends_at": ends.isoformat(),
                "names": _names(event),
            }


def _moment(value: date, zone: ZoneInfo) -> datetime:
    """Days and times without a zone are the schedule's."""
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)


def _names(event: Any) -> list[str]:
    """Names that an event has: attendees, then the summary, then the organizer."""
    summary = str(event.get("SUMMARY", ""))[:500].strip()
    found = [
        *_people(event, "ATTENDEE"),
        summary,
        *_ADDRESS.findall(summary),
        *_WORD.findall(summary),
        *_people(event, "ORGANIZER"),
    ]
    short = (one.strip().lower() for one in found)
    # Nobody's name has a NUL, and no column takes one.
    usable = (one for one in short if 0 < len(one) <= NAME_MAX and "\0" not in one)
    return list(dict.fromkeys(usable))[:NAMES_MAX]


def _people(event: Any, name: str) -> Iterator[str]:
    found = event.get(name, [])
    for one in found if isinstance(found, list) else [found]:
        params = {key.upper(): str(value).upper() for key, value in one.params.items()}
        is_person = params.get("CUTYPE") not in ("RESOURCE", "ROOM", "GROUP")
        if is_person and params.get("PARTSTAT") != "DECLINED":
            yield re.sub("^mailto:", "", str(one), flags=re.IGNORECASE)
            yield str(one.params.get("CN", ""))


if __name__ == "__main__":
    main()
