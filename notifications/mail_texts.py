"""Words of a mail, made when it is sent: of the entry, and of how things are by then."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import password_reset
from accounts.models import User
from approvals.models import Approval
from audit.models import Entry
from core.messages.localizing import localized
from notifications.events import PERSONAL, Event
from notifications.models import Delivery
from notifications.outcomes import DECIDED, NOT_ALLOWED, REVIEWED, NotNeeded
from notifications.payloads import link
from notifications.recipients import ANSWERED, ASKED, deciders, may_act
from registry.models import Tool

ROLE_CHANGES = {
    "role.given": gettext_lazy("%(actor)s gave %(person)s the role %(role)s"),
    "role.requested": gettext_lazy("%(actor)s requested the role %(role)s for %(person)s"),
    "role.taken": gettext_lazy("%(actor)s took the role %(role)s from %(person)s"),
}


@dataclass
class MailText:
    subject: str
    lead: str
    link: str
    action: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    # Of a mail on several calls: each with its own link.
    calls: list[tuple[str, str]] = field(default_factory=list)


def compose(delivery: Delivery, person: User) -> MailText:
    """In the language that is active. Raises NotNeeded."""
    entry, event = Entry.objects.get(pk=delivery.entry_id), Event(delivery.event)
    if event in ASKED and not list(deciders(delivery.call_id, [person])):
        raise NotNeeded(DECIDED)
    if event not in (*ASKED, *ANSWERED, *PERSONAL) and not may_act(person, event):
        raise NotNeeded(NOT_ALLOWED)
    return describe(delivery, entry, event)


def describe(delivery: Delivery, entry: Entry, event: Event) -> MailText:
    """For whoever may know of it. Raises NotNeeded."""
    if event in ASKED or event in ANSWERED:
        return _of_approval(delivery, entry, event)
    match event:
        case Event.OUTCOME_UNKNOWN:
            return _of_unknown(delivery, entry)
        case Event.DEFINITION_REVIEW:
            return _of_definitions(delivery)
        case Event.SERVER_UNREACHABLE | Event.SERVER_REACHABLE:
            return _of_server(delivery, entry, event)
        case Event.ROLE_CHANGED:
            return _of_role(delivery, entry)
        case Event.RECOVERY_CODE_USED:
            return _of_recovery_code(delivery, entry)
        case Event.PASSWORD_RESET:
            return _of_reset(delivery, entry)
        case Event.NEW_DEVICE:
            return _of_device(delivery, entry)
    return _of_stop(delivery, entry, event)


def compose_digest(deliveries: list[Delivery], person: User) -> tuple[MailText | None, set[UUID]]:
    """One mail on all of them that the person may still decide, and which these are."""
    named, needed = [], set()
    for delivery in deliveries:
        with suppress(NotNeeded):
            said = compose(delivery, person)
            named.append((said.subject, said.link))
            needed.add(delivery.pk)
    if not named:
        return None, needed
    subject = ngettext(
        "Approval needed: %(n)s pending call", "Approval needed: %(n)s pending calls", len(named)
    )
    return (
        MailText(
            subject % {"n": len(named)},
            _("More calls became pending than fit into single mails."),
            settings.PUBLIC_URL + reverse("approvals:queue"),
            _("Open the queue"),
            calls=named,
        ),
        needed,
    )


def _of_approval(delivery: Delivery, entry: Entry, event: Event) -> MailText:
    approval = Approval.objects.select_related("call__agent", "call__person").get(
        pk=delivery.call_id
    )
    call = approval.call
    named = {"tool": call.tool_name, "agent": call.agent.name, "mark": call.fingerprint}
    subject = _("Approval needed: %(tool)s for %(agent)s (%(mark)s)") % named
    facts = [
        (_("Tool"), call.tool_name),
        (_("Agent"), call.agent.name),
        (_("Fingerprint"), call.fingerprint),
    ]
    if call.person:
        facts.insert(2, (_("For"), call.person.username))
    if event in ASKED:
        facts.append((_("Decide by"), _moment(approval)))
    first = event == Event.APPROVAL_NEEDED
    return MailText(
        subject if first else f"Re: {subject}",
        _lead(entry, event, approval),
        link(delivery),
        _("Open and decide") if event in ASKED else _("Open the call"),
        facts,
    )


def _lead(entry: Entry, event: Event, approval: Approval) -> str:
    if event == Event.APPROVAL_REMINDER:
        return _("Still pending, and about to expire. %(why)s") % {
            "why": localized(approval.reason)
        }
    return localized(approval.reason if event == Event.APPROVAL_NEEDED else entry.reason)


def _moment(approval: Approval) -> str:
    """In the reader's time, which is named: a mail may be read elsewhere."""
    local = localtime(approval.decide_by)
    return f"{date_format(local, 'DATETIME_FORMAT')} {local.tzname()}"


def _of_unknown(delivery: Delivery, entry: Entry) -> MailText:
    named = {"tool": entry.tool, "agent": entry.agent}
    return MailText(
        _("Outcome unknown: %(tool)s for %(agent)s") % named,
        localized(entry.reason),
        link(delivery),
        _("Record the outcome"),
        [(_("Tool"), entry.tool), (_("Agent"), entry.agent)],
    )


def _of_definitions(delivery: Delivery) -> MailText:
    unread = Tool.objects.filter(server__slug=delivery.server, state__in=["new", "changed"])
    count = unread.count()
    if not count:
        raise NotNeeded(REVIEWED)
    named = {"server": delivery.server, "n": count}
    return MailText(
        _("Definitions to review: %(server)s") % named,
        _("Agents get none of these before somebody has reviewed and published them."),
        link(delivery),
        _("Review"),
        [(_("Server"), delivery.server), (_("Definitions"), str(count))],
    )


def _of_server(delivery: Delivery, entry: Entry, event: Event) -> MailText:
    lost = event == Event.SERVER_UNREACHABLE
    subject = _("Server unreachable: %(server)s") if lost else _("Server reachable: %(server)s")
    return MailText(
        subject % {"server": entry.server},
        localized(entry.reason) if lost else _("It answers again."),
        link(delivery),
        _("Open the server"),
        [(_("Server"), entry.server)],
    )


def _of_role(delivery: Delivery, entry: Entry) -> MailText:
    named = names_of_role(entry)
    is_requested = entry.action == "role.requested"
    return MailText(
        str(ROLE_CHANGES[entry.action]) % named,
        _("Another administrator has to confirm it.") if is_requested else "",
        link(delivery),
        _("Open the users"),
        [(_("User"), named["person"]), (_("Role"), named["role"]), (_("By"), named["actor"])],
    )


def names_of_role(entry: Entry) -> dict[str, str]:
    """Empty names where the entry's details were forgotten."""
    details = entry.details or {}
    person, role = details.get("person", ""), details.get("role", "")
    return {"actor": entry.actor, "person": person, "role": _(role) if role else ""}


def _of_recovery_code(delivery: Delivery, entry: Entry) -> MailText:
    details = entry.details or {}
    return MailText(
        _("A recovery code of yours was used"),
        _("If that was not you: set a new password, and make new recovery codes."),
        link(delivery),
        _("Open your profile"),
        [
            (_("User"), entry.actor),
            (_("Address"), str(details.get("address", ""))),
            (_("Recovery codes left"), str(details.get("left", ""))),
        ],
    )


def _of_reset(delivery: Delivery, entry: Entry) -> MailText:
    """Its link is made as it is sent: nothing that opens the account waits in a row."""
    person = delivery.person
    is_old = timezone.now() - entry.at > timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    if person is None or not person.reset_by_mail_since or is_old:
        raise NotNeeded(NOT_ALLOWED)
    address = str((entry.details or {}).get("address", ""))
    text = password_reset.link_text(person)
    return MailText(
        _("Set a new password"),
        _("Somebody asked for this link. It works once, within 30 minutes."),
        settings.PUBLIC_URL + reverse("accounts:password_reset", args=[text]),
        _("Set a new password"),
        [(_("User"), person.username), (_("Address"), address)],
    )


def _of_device(delivery: Delivery, entry: Entry) -> MailText:
    details = entry.details or {}
    return MailText(
        _("Your account was signed in to on a new device"),
        _("If that was not you: end the session, and set a new password."),
        link(delivery),
        _("Open your sessions"),
        [
            (_("User"), entry.actor),
            (_("Device"), localized(str(details.get("device", "")))),
            (_("Address"), str(details.get("address", ""))),
        ],
    )


def _of_stop(delivery: Delivery, entry: Entry, event: Event) -> MailText:
    began = event == Event.STOP_BEGAN
    facts = [(_("By"), entry.actor)]
    if entry.agent:
        facts.append((_("Agent"), entry.agent))
    if entry.server:
        facts.append((_("Server"), entry.server))
    return MailText(
        _("Emergency stop began") if began else _("Emergency stop ended"),
        entry.reason,
        link(delivery),
        _("Emergency stops"),
        facts,
    )
