"""Filters of the audit list. All of them live in the address, to be kept and shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from audit.models.entries import of_call
from audit.names import RowFilter, named
from core.templatetags.console import in_full

RANGES = {
    "1h": (_("Last hour"), timedelta(hours=1)),
    "24h": (_("Last 24 hours"), timedelta(hours=24)),
    "7d": (_("Last 7 days"), timedelta(days=7)),
    "30d": (_("Last 30 days"), timedelta(days=30)),
}
DAYS = {"today": (_("Today"), 0), "yesterday": (_("Yesterday"), 1)}
# Filter → what it is called.
FIELDS: dict[str, Any] = {
    "person": _("Person"),
    "agent": _("Agent"),
    "behalf": _("On behalf of"),
    "tool": _("Tool"),
    "server": _("Server"),
    "version": _("Version"),
    "action": _("What"),
    "decision": _("Decision"),
    "rule": _("Rule"),
    "call": _("Call"),
}
TIMES = ("range", "since", "until")
# Labels of all filters, for where a choice is only shown.
CALLED = FIELDS | {
    "state": _("State"),
    "range": _("Time"),
    "since": _("Since"),
    "until": _("Until"),
    "text": _("Arguments contain"),
}
DECISIONS = {
    "allow": _("Allowed by policy"),
    "ask": _("Approval required"),
    "deny": _("Blocked by policy"),
}
SHOWN = {("range", value): label for value, (label, _span) in (RANGES | DAYS).items()} | {
    ("decision", value): label for value, label in DECISIONS.items()
}
NAMES = (*FIELDS, "state", *TIMES, "text")
# How the list shows entries.
GROUP, ORDER = "group", "order"
LONGEST = 200


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a request, with dates read in `zone`."""

    given: Mapping[str, str]
    zone: ZoneInfo
    now: datetime
    # Of the list alone: which entries fit is the same.
    by_call: bool = False
    # Of entries alone: calls stand where their newest entry does, and texts are searched backwards.
    oldest_first: bool = False
    # Read once, for all queries of a page.
    _rows: list[RowFilter] = field(default_factory=list, init=False, compare=False, repr=False)

    @classmethod
    def read(cls, asked: Mapping[str, str], zone: ZoneInfo) -> Filters:
        # A NUL can be in an address and in no row.
        given = {name: asked.get(name, "").strip().replace("\0", "")[:LONGEST] for name in NAMES}
        kept = {name: text for name, text in given.items() if text}
        by_call = asked.get(GROUP) == "call"
        oldest = asked.get(ORDER) == "oldest" and not by_call and "text" not in kept
        return cls(kept, zone, timezone.now(), by_call=by_call, oldest_first=oldest)

    @property
    def address(self) -> str:
        return "?" + urlencode(self.kept)

    @property
    def kept(self) -> dict[str, str]:
        """The address's parameters: the filters, and how the list shows what fits."""
        shown = {GROUP: "call"} if self.by_call else {}
        return {**self.given, **shown, **({ORDER: "oldest"} if self.oldest_first else {})}

    @property
    def switched(self) -> str:
        """The address of the other way to show the same entries."""
        return replace(self, by_call=not self.by_call, oldest_first=False).address

    @property
    def turned(self) -> str:
        """The address of the same entries in the other order."""
        return replace(self, oldest_first=not self.oldest_first).address

    @property
    def plain(self) -> str:
        """The address of the same entries as they come: one by one, newest first."""
        return replace(self, by_call=False, oldest_first=False).address

    @property
    def text(self) -> str:
        return self.given.get("text", "")

    @property
    def labelled(self) -> list[tuple[str, Any, Any]]:
        """Each filter's name and label, and its value as people read it."""
        return [
            (name, CALLED[name], self._shown(name, value)) for name, value in self.given.items()
        ]

    def _shown(self, name: str, value: str) -> Any:
        """A state stays as it is: its words are of another package."""
        at = moment(value, self.zone) if name in ("since", "until") else None
        return in_full(at, self.zone) if at else SHOWN.get((name, value), value)

    @property
    def narrow(self) -> bool:
        """Do they ask for more than a stretch of time?"""
        return any(name not in TIMES for name in self.given)

    def without_text(self) -> Filters:
        if not self.text:
            return self
        given = {name: value for name, value in self.given.items() if name != "text"}
        return replace(self, given=given)

    def since(self) -> datetime | None:
        return self._span()[0]

    def until(self) -> datetime | None:
        return self._span()[1]

    def _span(self) -> tuple[datetime | None, datetime | None]:
        chosen = self.given.get("range", "")
        if chosen in RANGES:
            return self.now - RANGES[chosen][1], None
        if chosen in DAYS:
            return self._day(DAYS[chosen][1])
        moments = (moment(self.given.get(name, ""), self.zone) for name in ("since", "until"))
        since, until = moments
        return since, until

    def _day(self, back: int) -> tuple[datetime, datetime]:
        day = self.now.astimezone(self.zone).date() - timedelta(days=back)
        first, last = (datetime.combine(d, time(), self.zone) for d in (day, day + timedelta(1)))
        return first, last

    def of_rows(self) -> RowFilter:
        """The filter on EntryRow, by the numbers of the names."""
        if not self._rows:
            self._rows.append(named(self.given).narrow(self._in_time() & self._of_call()))
        return self._rows[0]

    def _of_call(self) -> Q:
        asked = self.given.get("call")
        if not asked:
            return Q()
        try:
            return of_call(UUID(asked))
        except ValueError:
            return Q(pk__in=[])

    def _in_time(self) -> Q:
        since, until = self._span()
        asked = Q(at__gte=since) if since else Q()
        return asked & Q(at__lt=until) if until else asked


def moment(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        read = parse_datetime(text)
    except ValueError:
        return None
    if read is None:
        return None
    read = read.replace(tzinfo=zone) if read.tzinfo is None else read
    # Beyond these, time zones and PostgreSQL do not agree on what a date is.
    return read if 1970 <= read.year <= 9000 else None
