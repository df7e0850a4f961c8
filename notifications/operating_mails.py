"""Mail for whoever keeps the installation running: servers, calendars, tokens, limits, checks."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import AgentToken, ScimToken, ServiceToken
from audit.models import Entry
from core.messages.localizing import localized
from notifications.events import Event
from notifications.mail_body import MailText, local_moment
from notifications.models import Delivery
from notifications.outcomes import REPLACED, NotNeeded
from notifications.payloads import link

Token = AgentToken | ServiceToken | ScimToken
TOKENS: dict[str, type[AgentToken] | type[ServiceToken] | type[ScimToken]] = {
    "agent": AgentToken,
    "service": ServiceToken,
    "scim": ScimToken,
}
OWNERS = {
    "agent": gettext_lazy("Agent"),
    "service": gettext_lazy("Service account"),
    "scim": gettext_lazy("Identity provider"),
}


def of_server(delivery: Delivery, entry: Entry, event: Event) -> MailText:
    lost = event == Event.SERVER_UNREACHABLE
    subject = _("Server unreachable: %(server)s") if lost else _("Server reachable: %(server)s")
    return MailText(
        subject % {"server": entry.server},
        localized(entry.reason) if lost else _("It answers again."),
        link(delivery),
        _("Open the server"),
        [(_("Server"), entry.server)],
    )


def of_calendar(delivery: Delivery, entry: Entry, event: Event) -> MailText:
    details = entry.details or {}
    failed = event == Event.CALENDAR_FAILED
    subject = (
        _("On-call calendar cannot be read: %(schedule)s")
        if failed
        else _("On-call calendar can be read again: %(schedule)s")
    )
    lead = _("%(why)s The shifts that were read last still count.")
    return MailText(
        subject % {"schedule": details.get("schedule", "")},
        lead % {"why": localized(entry.reason)} if failed else "",
        link(delivery),
        _("Open the on-call schedules"),
        [
            (_("On-call schedule"), str(details.get("schedule", ""))),
            (_("Calendar"), str(details.get("url", ""))),
        ],
    )


def of_token(delivery: Delivery, entry: Entry) -> MailText:
    """Raises NotNeeded where it was revoked or rotated meanwhile."""
    details = entry.details or {}
    kind, public_id = str(details.get("kind", "")), str(details.get("token_id", ""))
    token = _token(kind, public_id)
    # Rotated, it expires earlier than it was told to.
    if token is None or token.expires_at.isoformat() != details.get("expires_at"):
        raise NotNeeded(REPLACED)
    owner = str(details.get("of", ""))
    return MailText(
        _("A token of %(owner)s is about to expire") % {"owner": owner},
        _("After that its calls are blocked. Issue a new one, and exchange it where it is used."),
        link(delivery),
        _("Open the tokens"),
        [
            (str(OWNERS[kind]), owner),
            (_("Token"), str(details.get("token", ""))),
            (_("Expires"), local_moment(token.expires_at)),
        ],
    )


def _token(kind: str, public_id: str) -> Token | None:
    """The token, unless it was revoked."""
    if kind not in TOKENS:
        return None
    return TOKENS[kind].objects.filter(public_id=public_id, revoked_at=None).first()


def of_limit(delivery: Delivery, entry: Entry) -> MailText:
    details = entry.details or {}
    facts = [
        (_("Limit"), str(details.get("limit", ""))),
        (_("Counted for"), str(details.get("counted", ""))),
        (_("Agent"), entry.agent),
        (_("Tool"), entry.tool),
    ]
    return MailText(
        _("Limit reached: %(limit)s") % {"limit": details.get("limit", "")},
        localized(entry.reason),
        link(delivery),
        _("Open the limits"),
        [(label, value) for label, value in facts if value],
    )


def of_unusual_use(delivery: Delivery, entry: Entry) -> MailText:
    return MailText(
        _("Unusual use: %(agent)s") % {"agent": entry.agent},
        localized(entry.reason),
        link(delivery),
        _("Open the agent"),
        [(_("Agent"), entry.agent)],
    )


def of_verification(delivery: Delivery, entry: Entry) -> MailText:
    details = entry.details or {}
    return MailText(
        _("The verification of the audit log failed"),
        localized(entry.reason),
        link(delivery),
        _("Open the audit log"),
        [(_("Findings"), str(details.get("findings", ""))), (_("By"), entry.actor)],
    )


def of_backup(delivery: Delivery, entry: Entry) -> MailText:
    details = entry.details or {}
    return MailText(
        _("A backup failed"),
        localized(entry.reason),
        link(delivery),
        _("Open the audit log"),
        [(_("File"), str(details.get("path", ""))), (_("By"), entry.actor)],
    )
