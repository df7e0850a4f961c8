"""The sentence that says what happened, before any words of people, in mails and chats."""

from __future__ import annotations

from django.utils.translation import gettext as _

from audit.models import Entry
from notifications.events import Event

STOPS = (Event.STOP_BEGAN, Event.STOP_ENDED)
# In a mail the reason of a person would come first without it.
OF_MAIL = (*STOPS, Event.APPROVAL_DECIDED, Event.BREAK_GLASS_USED)


def template(entry: Entry, event: Event) -> str:
    """With placeholders for what `names` has; "" where the event's own name says it."""
    if event in STOPS:
        return _of_stop(entry, event)
    match event, entry.action:
        case Event.APPROVAL_NEEDED, "approval.widened":
            return _("Others may decide %(tool)s for %(agent)s too by now.")
        case Event.APPROVAL_NEEDED, "call.amended":
            return _("%(actor)s edited %(tool)s for %(agent)s, and it needs approval as edited.")
        case Event.APPROVAL_NEEDED, _action:
            return _("%(agent)s asks for approval of %(tool)s.")
        case Event.APPROVAL_REMINDER, _action:
            return _("Still pending, and about to expire: %(tool)s for %(agent)s.")
        case Event.APPROVAL_EXPIRED, _action:
            return _("Nobody decided in time: %(tool)s for %(agent)s expired.")
        case Event.APPROVAL_WITHDRAWN, "call.withdrawn":
            return _("%(actor)s withdrew %(tool)s for %(agent)s.")
        case Event.APPROVAL_WITHDRAWN, _action:
            return _("%(tool)s for %(agent)s was superseded: nobody can approve it any more.")
        case Event.APPROVAL_DECIDED, "call.approved":
            return _("%(actor)s approved %(tool)s for %(agent)s.")
        case Event.APPROVAL_DECIDED, _action:
            return _("%(actor)s denied %(tool)s for %(agent)s.")
        case Event.BREAK_GLASS_USED, _action:
            return _("Break-glass: %(actor)s let %(tool)s run for %(agent)s.")
    return ""


def names(entry: Entry) -> dict[str, str]:
    return {
        "agent": entry.agent,
        "server": entry.server,
        "tool": entry.tool,
        "actor": entry.actor,
    }


def of_mail(entry: Entry, event: Event) -> str:
    return template(entry, event) % names(entry) if event in OF_MAIL else ""


def _of_stop(entry: Entry, event: Event) -> str:
    began = event == Event.STOP_BEGAN
    if entry.agent and began:
        return _(
            "%(actor)s began an emergency stop: until it ends, no call of %(agent)s starts or can "
            "be approved."
        )
    if entry.agent:
        return _("%(actor)s ended the emergency stop of the agent %(agent)s.")
    if entry.server and began:
        return _(
            "%(actor)s began an emergency stop: until it ends, no call to %(server)s starts or can "
            "be approved."
        )
    if entry.server:
        return _("%(actor)s ended the emergency stop of the server %(server)s.")
    if began:
        return _(
            "%(actor)s began an emergency stop: until it ends, no call starts or can be approved."
        )
    return _("%(actor)s ended the emergency stop of everything.")
