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

import orjson
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.models import Approval
from audit.models import Entry
from notifications import headlines
from notifications.events import Event
from notifications.mail_body import MailText, labelled, on_one_line
from notifications.mail_texts import ROLE_CHANGES, describe, names_of_role
from notifications.models import Delivery
from notifications.outcomes import DECIDED, NotNeeded
from notifications.payloads import entry_of, link
from notifications.recipients import ASKED

# In units of UTF-16, as Telegram and Discord count. A whole message then fits every channel:
# Discord's 2,000 are the least.
VALUE_MAX = 120
LEAD_MAX = 300
# Of all arguments together; each has the same share.
ARGUMENTS_MAX = 300
ARGUMENTS_SHOWN = 6
ARGUMENT_NAME_MAX = 24
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
    notice: Line = field(default_factory=list)

    def lines(self) -> Iterator[Line]:
        yield self.headline
        if self.notice:
            yield self.notice
        if self.lead:
            yield self.lead
        yield from self.facts


def compose(delivery: Delivery) -> ChatMessage:
    """In the language that is active. Raises NotNeeded."""
    entry, event = entry_of(delivery), Event(delivery.event)
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
            *([MessagePart(labelled(name)), _foreign(value)] for name, value in described.facts),
            *(_arguments(described) if _takes_arguments(delivery) else []),
        ],
        [MessagePart(described.notice)] if described.notice else [],
    )


def _takes_arguments(delivery: Delivery) -> bool:
    return delivery.webhook is not None and delivery.webhook.takes_arguments


def _arguments(described: MailText) -> list[Line]:
    """Each on a line of its own: no value passes for another argument, or takes its room."""
    if not described.arguments:
        return []
    lines = [[MessagePart(_("Arguments:"))]]
    shown = described.arguments[:ARGUMENTS_SHOWN]
    lines += [_argument(name, value, ARGUMENTS_MAX // len(shown)) for name, value in shown]
    left = len(described.arguments) - len(shown) + described.arguments_left_out
    if left:
        said = ngettext("%(n)d argument is not shown", "%(n)d arguments are not shown", left)
        lines.append([MessagePart(said % {"n": left})])
    return lines


def _argument(name: str, value: str, most: int) -> Line:
    called = _foreign(name, ARGUMENT_NAME_MAX)
    quoted = orjson.dumps(on_one_line(value)).decode()
    clipped = _clipped(quoted, most - ARGUMENT_NAME_MAX)
    end = "" if clipped == quoted else '"'
    return [called, MessagePart(": "), MessagePart(clipped + end, is_foreign=True)]


def _headline(entry: Entry, event: Event) -> Line:
    if event == Event.ROLE_CHANGED:
        return _filled(str(ROLE_CHANGES[entry.action]), names_of_role(entry))
    if said := headlines.template(entry, event):
        return _filled(said, headlines.names(entry))
    return [MessagePart(str(event.label))]


def _filled(said: str, names: dict[str, str]) -> Line:
    """Every second piece is the name of a placeholder, wherever a translation has it."""
    pieces = enumerate(_PLACEHOLDER.split(said))
    parts = [_foreign(names[one]) if at % 2 else MessagePart(one) for at, one in pieces]
    return [one for one in parts if one.text]


def _foreign(text: str, most: int = VALUE_MAX) -> MessagePart:
    """On one line, with hidden characters written out."""
    return MessagePart(_clipped(on_one_line(text), most) or "—", is_foreign=True)


def _clipped(text: str, most: int) -> str:
    units = text.encode("utf-16-le")
    if len(units) <= 2 * most:
        return text
    return units[: 2 * (most - 1)].decode("utf-16-le", errors="ignore") + "…"
