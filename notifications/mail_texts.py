"""Words of a mail, made when it is sent: of the entry, and of how things are by then."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import password_reset
from accounts.models import User
from approvals.models import Approval, Delegation
from audit.models import Entry
from calls import freezes
from core.messages.localizing import localized
from notifications import headlines, operating_mails, shown_arguments, workload_mails
from notifications.events import ANSWERS, PERSONAL, Event
from notifications.mail_body import MailText, local_moment, on_one_line
from notifications.models import Delivery
from notifications.outcomes import DECIDED, ENDED, NOT_ALLOWED, REVIEWED, NotNeeded
from notifications.payloads import entry_of, link, link_to
from notifications.recipients import ASKED, deciders, may_act
from notifications.shown_arguments import NOTHING
from registry.models import Tool

ROLE_CHANGES = {
    "role.given": gettext_lazy("%(actor)s gave %(person)s the role %(role)s"),
    "role.requested": gettext_lazy("%(actor)s requested the role %(role)s for %(person)s"),
    "role.taken": gettext_lazy("%(actor)s took the role %(role)s from %(person)s"),
    "role.changed": gettext_lazy("%(actor)s changed what the role %(role)s may do"),
    "person.groups_set": gettext_lazy("%(actor)s set the groups of %(person)s: %(role)s"),
}


def compose(delivery: Delivery, person: User) -> MailText:
    """In the language that is active. Raises NotNeeded."""
    entry, event = entry_of(delivery), Event(delivery.event)
    if event in ASKED and not list(deciders(delivery.call_id, [person])):
        raise NotNeeded(DECIDED)
    if event not in (*ASKED, *PERSONAL) and not may_act(person, event, entry):
        raise NotNeeded(NOT_ALLOWED)
    if event == Event.WORKLOAD:
        return workload_mails.compose(delivery, entry, person)
    said = describe(delivery, entry, event)
    said.headline = on_one_line(headlines.of_mail(entry, event))
    return said


def describe(delivery: Delivery, entry: Entry, event: Event) -> MailText:
    """For whoever may know of it. Raises NotNeeded."""
    if event in ASKED or event in ANSWERS:
        return _of_approval(delivery, entry, event)
    match event:
        case Event.OUTCOME_UNKNOWN:
            return _of_unknown(delivery, entry)
        case Event.DEFINITION_REVIEW:
            return _of_definitions(delivery)
        case Event.SERVER_UNREACHABLE | Event.SERVER_REACHABLE:
            return operating_mails.of_server(delivery, entry, event)
        case Event.CALENDAR_FAILED | Event.CALENDAR_RECOVERED:
            return operating_mails.of_calendar(delivery, entry, event)
        case Event.TOKEN_EXPIRING:
            return operating_mails.of_token(delivery, entry)
        case Event.LIMIT_REACHED:
            return operating_mails.of_limit(delivery, entry)
        case Event.AGENT_UNUSUAL:
            return operating_mails.of_unusual_use(delivery, entry)
        case Event.VERIFICATION_FAILED:
            return operating_mails.of_verification(delivery, entry)
        case Event.BACKUP_FAILED:
            return operating_mails.of_backup(delivery, entry)
        case Event.ROLE_CHANGED:
            return _of_role(delivery, entry)
        case Event.BREAK_GLASS_USED:
            return _of_break_glass(delivery, entry)
        case Event.DELEGATION_MADE | Event.DELEGATION_ENDED:
            return _of_delegation(delivery, entry, event)
        case Event.RECOVERY_CODE_USED:
            return _of_recovery_code(delivery, entry)
        case Event.FACTORS_RESET:
            return _of_factors(delivery, entry)
        case Event.PASSWORD_RESET:
            return _of_reset(delivery, entry)
        case Event.NEW_DEVICE:
            return _of_device(delivery, entry)
    return _of_stop(delivery, entry, event)


def compose_digest(deliveries: list[Delivery], person: User) -> tuple[MailText | None, set[UUID]]:
    """One mail on all of them that the person may still decide, and which these are. A single one
    gets its own mail."""
    needed = {}
    for delivery in deliveries:
        with suppress(NotNeeded):
            needed[delivery.pk] = delivery, compose(delivery, person)
    said = [one for _delivery, one in needed.values()]
    if len(said) < 2:
        return said[0] if said else None, {*needed}
    subject = ngettext(
        "Approval needed: %(n)s pending call", "Approval needed: %(n)s pending calls", len(said)
    )
    first, _said = next(iter(needed.values()))
    mail = MailText(
        subject % {"n": len(said)},
        _("More calls became pending than fit into single mails."),
        link_to(first, reverse("approvals:queue")),
        _("Open the queue"),
        calls=[(one.subject, one.link) for one in said],
        # Where some of them can be approved, the queue shows which.
        notice=said[0].notice if all(one.notice for one in said) else "",
    )
    return mail, {*needed}


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
        facts.insert(2, (_("For"), call.person.shown_name))
    is_stopped = event in ASKED and freezes.is_stopped(call)
    if event in ASKED and not is_stopped:
        facts.append((_("Decide by"), local_moment(approval.decide_by)))
    first = event == Event.APPROVAL_NEEDED
    shown = shown_arguments.of_approval(approval) if event in ASKED else NOTHING
    return MailText(
        subject if first else f"Re: {subject}",
        _lead(entry, event, approval),
        link(delivery),
        _("Open and decide") if event in ASKED and not is_stopped else _("Open the call"),
        facts,
        notice=_stop_notice() if is_stopped else "",
        arguments=shown.values,
        is_masked=shown.is_masked,
        arguments_left_out=shown.left_out,
    )


def _stop_notice() -> str:
    return _(
        "An emergency stop is in force: nothing can be approved until it ends. "
        "The time to decide is paused."
    )


def _lead(entry: Entry, event: Event, approval: Approval) -> str:
    if event == Event.APPROVAL_REMINDER:
        return _("Still pending, and about to expire. %(why)s") % {
            "why": localized(approval.reason)
        }
    if entry.action == "approval.widened":
        return f"{localized(entry.reason)} {localized(approval.reason)}"
    if entry.action == "call.amended":
        said = _("%(who)s edited the arguments: earlier votes do not count. %(why)s")
        return said % {"who": entry.actor, "why": localized(approval.reason)}
    return localized(approval.reason if event == Event.APPROVAL_NEEDED else entry.reason)


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
        _("Agents get none of these until they are reviewed and published."),
        link(delivery),
        _("Review"),
        [(_("Server"), delivery.server), (_("Definitions"), str(count))],
    )


def _of_role(delivery: Delivery, entry: Entry) -> MailText:
    named = names_of_role(entry)
    is_requested = entry.action == "role.requested"
    return MailText(
        str(ROLE_CHANGES[entry.action]) % named,
        _("Another administrator has to confirm it.") if is_requested else "",
        link(delivery),
        _("Open the users"),
        [(label, said) for label, said in _facts_of_role(entry, named) if said],
    )


def _facts_of_role(entry: Entry, named: dict[str, str]) -> list[tuple[str, str]]:
    role = _("Groups") if entry.action == "person.groups_set" else _("Role")
    return [(_("User"), named["person"]), (role, named["role"]), (_("By"), named["actor"])]


def names_of_role(entry: Entry) -> dict[str, str]:
    """Empty names where the entry's details were forgotten."""
    details = entry.details or {}
    roles = [details.get("role", "")]
    if entry.action == "person.groups_set":
        roles = details.get("after", [])
    role = ", ".join(_(one) for one in roles if one)
    return {"actor": entry.actor, "person": details.get("person", ""), "role": role or "–"}


def _of_break_glass(delivery: Delivery, entry: Entry) -> MailText:
    details = entry.details or {}
    return MailText(
        _("Break-glass: %(who)s let %(tool)s run for %(agent)s")
        % {"who": entry.actor, "tool": entry.tool, "agent": entry.agent},
        entry.reason,
        link(delivery),
        _("Open the call"),
        [
            (_("By"), entry.actor),
            (_("Notified"), str(details.get("second", ""))),
            (_("Tool"), entry.tool),
            (_("Agent"), entry.agent),
        ],
    )


def _of_delegation(delivery: Delivery, entry: Entry, event: Event) -> MailText:
    """Raises NotNeeded where it ended before its delegate was told of it."""
    details = entry.details or {}
    made = event == Event.DELEGATION_MADE
    current = Delegation.objects.current().filter(pk=details.get("delegation", 0))
    if made and not current.exists():
        raise NotNeeded(ENDED)
    said = (
        _("%(who)s chose you as their delegate") if made else _("%(who)s ended a delegation early")
    )
    lead = _("You are notified in their place, and may vote on calls that you may both decide.")
    facts = [
        (_("Delegate"), str(details.get("delegate", ""))),
        (_("For"), str(details.get("delegator", ""))),
        *(_period(details) if made else []),
        (_("Group"), str(details.get("group", ""))),
        (_("Server"), str(details.get("server", ""))),
    ]
    return MailText(
        said % {"who": entry.actor},
        lead if made else "",
        link(delivery),
        _("Open the delegations"),
        [(label, value) for label, value in facts if value],
    )


def _period(details: dict[str, Any]) -> list[tuple[str, str]]:
    named = ((_("From"), "begins_at"), (_("Until"), "ends_at"))
    known = ((label, details.get(name)) for label, name in named)
    return [(label, local_moment(datetime.fromisoformat(at))) for label, at in known if at]


def _of_factors(delivery: Delivery, entry: Entry) -> MailText:
    details = entry.details or {}
    return MailText(
        _("Your second factors were removed"),
        _("Sign in and set up new ones. If you did not request it, contact your administrators."),
        link(delivery),
        _("Open your profile"),
        [
            (_("User"), str(details.get("person", ""))),
            (_("Asked by"), str(details.get("asked_by", ""))),
            (_("By"), entry.actor),
        ],
    )


def _of_recovery_code(delivery: Delivery, entry: Entry) -> MailText:
    details = entry.details or {}
    return MailText(
        _("A recovery code of yours was used"),
        _("If that was not you: set a new password, and create new recovery codes."),
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
        _("This link was requested for your account. It works once, within 30 minutes."),
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
    if not entry.agent and not entry.server:
        facts.append((_("Covers"), _("Everything")))
    return MailText(
        _("Emergency stop began") if began else _("Emergency stop ended"),
        entry.reason,
        link(delivery),
        _("Emergency stops"),
        facts,
    )
