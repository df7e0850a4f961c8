"""Words of a message in a chat, made when it is sent; arguments of the call only where its rules
say so (notifications/shown_arguments.py).

Names and reasons come from agents, servers and people: they stay apart from our own words, so that
each format sees to it that a name is no mention, link or mark-up (notifications/chat_formats.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from django.utils.translation import gettext as _

from approvals.models import Approval
from audit.models import Entry
from core.text import revealed
from notifications.events import Event
from notifications.mail_body import MailText
from notifications.mail_texts import ROLE_CHANGES, describe, names_of_role
from notifications.models import Delivery
from notifications.outcomes import DECIDED, NotNeeded
from notifications.payloads import link
from notifications.recipients import ASKED

# In units of UTF-16, as Telegram and Discord count. A whole message then fits every channel:
# Discord's 2,000 are the least.
VALUE_MAX = 120
LEAD_MAX = 300
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


class MessagePart(NamedTuple):
    """A stretch of a line; `is_foreign` if it is not ours and has to be shown as it is."""

    text: str
    is_foreign: bool = False


Line = list[MessagePart]


@dataclass
class ChatMessage:
    headline: Line
    link: str
    action: str
    lead: Line = field(default_factory=list)
    facts: list[Line] = field(default_factory=list)

    def lines(self) -> Iterator[Line]:
        yield self.headline
        if self.lead:
            yield self.lead
        yield from self.facts


def compose(delivery: Delivery) -> ChatMessage:
    """In the language that is active. Raises NotNeeded."""
    entry, event = Entry.objects.get(pk=delivery.entry_id), Event(delivery.event)
    if event == Event.TEST:
        said = _("This is a test message: notifications arrive here.")
        return ChatMessage([MessagePart(said)], link(delivery), _("Open the notifications"))
    if event in ASKED and not Approval.objects.waiting().filter(pk=delivery.call_id).exists():
        raise NotNeeded(DECIDED)
    described = describe(delivery, entry, event)
    return ChatMessage(
        _headline(entry, event),
        described.link,
        described.action,
        [_foreign(described.lead, LEAD_MAX)] if described.lead else [],
        [
            *([MessagePart(f"{label}: "), _foreign(value)] for label, value in described.facts),
            *(_arguments(described) if _takes_arguments(delivery) else []),
        ],
    )


def _takes_arguments(delivery: Delivery) -> bool:
    return delivery.webhook is not None and delivery.webhook.takes_arguments


def _arguments(described: MailText) -> list[Line]:
    """On one line, as much as there is room for."""
    if not described.arguments:
        return []
    said = "; ".join(f"{name}: {value}" for name, value in described.arguments)
    return [[MessagePart(f"{_('Arguments')}: "), _foreign(said, LEAD_MAX)]]


def _headline(entry: Entry, event: Event) -> Line:
    match event, entry.action:
        case Event.APPROVAL_NEEDED, "approval.widened":
            said = _("Others may decide %(tool)s for %(agent)s too by now.")
        case Event.APPROVAL_NEEDED, _action:
            said = _("%(agent)s asks for approval of %(tool)s.")
        case Event.APPROVAL_REMINDER, _action:
            said = _("Still pending, and about to expire: %(tool)s for %(agent)s.")
        case Event.APPROVAL_EXPIRED, _action:
            said = _("Nobody decided in time: %(tool)s for %(agent)s expired.")
        case Event.APPROVAL_WITHDRAWN, "call.withdrawn":
            said = _("%(actor)s withdrew %(tool)s for %(agent)s.")
        case Event.APPROVAL_WITHDRAWN, _action:
            said = _("%(tool)s for %(agent)s was superseded: nobody can approve it any more.")
        case Event.APPROVAL_DECIDED, "call.approved":
            said = _("%(actor)s approved %(tool)s for %(agent)s.")
        case Event.APPROVAL_DECIDED, _action:
            said = _("%(actor)s denied %(tool)s for %(agent)s.")
        case Event.BREAK_GLASS_USED, _action:
            said = _("Break-glass: %(actor)s let %(tool)s run for %(agent)s.")
        case Event.ROLE_CHANGED, action:
            return _filled(str(ROLE_CHANGES[action]), names_of_role(entry))
        case _:
            return [MessagePart(str(event.label))]
    return _filled(said, {"agent": entry.agent, "tool": entry.tool, "actor": entry.actor})


def _filled(said: str, names: dict[str, str]) -> Line:
    """Every second piece is the name of a placeholder, wherever a translation has it."""
    pieces = enumerate(_PLACEHOLDER.split(said))
    parts = [_foreign(names[one]) if at % 2 else MessagePart(one) for at, one in pieces]
    return [one for one in parts if one.text]


def _foreign(text: str, most: int = VALUE_MAX) -> MessagePart:
    """On one line, with hidden characters written out."""
    shown = " ".join(revealed(text).split())
    return MessagePart(_clipped(shown, most) or "—", is_foreign=True)


def _clipped(text: str, most: int) -> str:
    units = text.encode("utf-16-le")
    if len(units) <= 2 * most:
        return text
    return units[: 2 * (most - 1)].decode("utf-16-le", errors="ignore") + "…"
