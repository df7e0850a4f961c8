"""Messages on a call that have no row any more, as their entries have them.

Rows go with their device, and after a month.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from accounts.models import User
from audit.models import Entry
from notifications.models import Delivery
from notifications.recipients import ASKED

ENDS = {
    "notification.sent": Delivery.State.SENT,
    "notification.given_up": Delivery.State.DEAD,
    "notification.dropped": Delivery.State.DROPPED,
}
# What its reader did then, and where a delivery has it.
LATER = {"notification.opened": "opened_at", "notification.acted": "acted_at"}


def recorded_alone(call_id: UUID, stored: Iterable[Delivery]) -> list[Delivery]:
    """Those that asked people, as they were stored: made for reading, never saved."""
    known = {str(one.pk) for one in stored}
    entries = Entry.objects.filter(call_id=call_id, seq=None, action__in=[*ENDS, *LATER])
    alone = [one for one in entries.order_by("pk") if _is_alone(one, known)]
    named = User.objects.filter(username__in={(one.details or {})["person"] for one in alone})
    people = {one.username: one for one in named} if alone else {}
    found: dict[str, Delivery] = {}
    for entry in alone:
        details = entry.details or {}
        made = found.setdefault(details["delivery"], _delivery(entry, people))
        _add(made, entry)
    return list(found.values())


def _is_alone(entry: Entry, known: set[str]) -> bool:
    """The message has no row. Details of a person who was forgotten are gone."""
    details = entry.details or {}
    is_of_person = details.get("event") in ASKED and "person" in details
    return is_of_person and details.get("delivery") not in known


def _delivery(entry: Entry, people: dict[str, User]) -> Delivery:
    details = entry.details or {}
    return Delivery(
        pk=UUID(details["delivery"]),
        event=details["event"],
        channel=details["channel"],
        person=people.get(details["person"]) or User(username=details["person"]),
        created_at=entry.at,
    )


def _add(made: Delivery, entry: Entry) -> None:
    if entry.action in ENDS:
        made.state, made.ended_at = ENDS[entry.action], entry.at
    else:
        setattr(made, LATER[entry.action], entry.at)
