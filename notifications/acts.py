"""Joins acts of people to the messages that led to them.

Read from entries by the cursor, as messages are: neither a broker that is away nor a worker that
dies loses one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from audit.models import Entry
from audit.services import Actor, record
from notifications.delivery_entries import facts
from notifications.events import Event
from notifications.models import Delivery

# Of a person on a call. A vote is the last of what breaks the glass, too.
ON_CALL = (
    "approval.voted",
    "approval.taken_back",
    "approval.comment",
    "approval.question",
    "call.amended",
    "call.resolved",
)
ON_DEFINITION = ("definition.published",)
ACTS = (*ON_CALL, *ON_DEFINITION)
FOLLOWED = ("notification.opened", "notification.forwarded")
# The last word of `via` in an entry: the message in a chat whose button was pressed.
PRESSED = re.compile(r"\S+ .* ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def note_acts(entries: Iterable[Entry]) -> None:
    """Runs in the transaction that remembers that they were read."""
    for one in entries:
        if one.action in ACTS and one.actor_kind == Entry.ActorKind.PERSON:
            _note(one)


def _note(act: Entry) -> None:
    message = _of_review(act) if act.action in ON_DEFINITION else _pressed(act) or _followed(act)
    if not message:
        return
    Delivery.objects.filter(pk=message["delivery"], acted_at=None).update(acted_at=act.at)
    record(
        "notification.acted",
        actor=Actor(Entry.ActorKind.PERSON, act.actor_id, act.actor),
        call_id=act.call_id,
        server=act.server,
        act=act.action,
        entry=act.pk,
        **message,
    )


def _followed(act: Entry) -> dict[str, Any]:
    """The message on the call whose link the person followed last."""
    found = Entry.objects.filter(
        call_id=act.call_id,
        seq=None,
        action__in=FOLLOWED,
        actor_kind=Entry.ActorKind.PERSON,
        actor_id=act.actor_id,
        pk__lt=act.pk,
    )
    last = found.order_by("-pk").first()
    details = (last.details or {}) if last else {}
    # Those of a person who was forgotten since are gone.
    return details if "delivery" in details else {}


def _pressed(act: Entry) -> dict[str, Any]:
    """The message in a chat whose button the person pressed."""
    via = PRESSED.fullmatch(str((act.details or {}).get("via", "")))
    pressed = Delivery.objects.for_page().filter(pk=via[1]).first() if via else None
    return facts(pressed) if pressed else {}


def _of_review(act: Entry) -> dict[str, Any]:
    """The message on the server, once: many definitions are published in one step."""
    mine = Delivery.objects.for_page().filter(person=act.actor_id)
    mine |= Delivery.objects.for_page().filter(device__person=act.actor_id)
    of_server = mine.filter(event=Event.DEFINITION_REVIEW, server=act.server)
    last = of_server.filter(opened_at__lt=act.at).order_by("-opened_at").first()
    return facts(last) if last and not last.acted_at else {}
