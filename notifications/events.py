"""Events that people and programs are notified of, and the entries that are those events."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Event(models.TextChoices):
    APPROVAL_NEEDED = "approval.needed", _("Approval needed")
    APPROVAL_REMINDER = "approval.reminder", _("Reminder before a pending call expires")
    APPROVAL_DECIDED = "approval.decided", _("A pending call was approved or denied")
    APPROVAL_EXPIRED = "approval.expired", _("A pending call expired")
    APPROVAL_WITHDRAWN = "approval.withdrawn", _("A pending call was withdrawn or superseded")
    OUTCOME_UNKNOWN = "call.outcome_unknown", _("The outcome of a call is unknown")
    DEFINITION_REVIEW = "definition.review_needed", _("Definitions to review")
    SERVER_UNREACHABLE = "server.unreachable", _("A server is unreachable")
    SERVER_REACHABLE = "server.reachable", _("A server is reachable")
    CALENDAR_FAILED = "on_call_calendar.failed", _("An on-call calendar cannot be read")
    CALENDAR_RECOVERED = "on_call_calendar.recovered", _("An on-call calendar can be read again")
    TOKEN_EXPIRING = "token.expiring", _("A token is about to expire")
    LIMIT_REACHED = "limit.reached", _("A limit or budget was reached")
    AGENT_UNUSUAL = "agent.unusual", _("The use of an agent is unusual")
    VERIFICATION_FAILED = (
        "audit.verification_failed",
        _("The verification of the audit log failed"),
    )
    BACKUP_FAILED = "backup.failed", _("A backup failed")
    WORKLOAD = "workload.weekly", _("Approval workload of the week")
    STOP_BEGAN = "emergency_stop.began", _("An emergency stop began")
    STOP_ENDED = "emergency_stop.ended", _("An emergency stop ended")
    ROLE_CHANGED = "role.changed", _("Roles or groups of a user, or a role, changed")
    BREAK_GLASS_USED = "break_glass.used", _("Break-glass was used")
    RECOVERY_CODE_USED = "recovery_code.used", _("A recovery code was used")
    NEW_DEVICE = "person.new_device", _("Sign-in on a new device")
    FACTORS_RESET = "person.factors_reset", _("Second factors were removed")
    PASSWORD_RESET = "password_reset.requested", _("A link for a new password was asked for")
    DELEGATION_MADE = "delegation.made", _("You were chosen as a delegate")
    DELEGATION_ENDED = "delegation.ended", _("A delegation ended early")
    TEST = "test", _("Test message")


# What became of a pending call.
ANSWERS = (Event.APPROVAL_DECIDED, Event.APPROVAL_EXPIRED, Event.APPROVAL_WITHDRAWN)
# On somebody's own account: mail and pushes to that person alone, whatever they chose, and to no
# webhook.
DELEGATIONS = (Event.DELEGATION_MADE, Event.DELEGATION_ENDED)
PERSONAL = (
    Event.RECOVERY_CODE_USED,
    Event.NEW_DEVICE,
    Event.FACTORS_RESET,
    Event.PASSWORD_RESET,
    *DELEGATIONS,
)
# Whoever may do something of it is always told by mail and pushes; webhooks as they are set.
ALWAYS = (*PERSONAL, Event.BREAK_GLASS_USED)
# Nobody subscribes to a test; it goes where it was asked for.
CHOICES = [
    (str(value), label) for value, label in Event.choices if value not in (*ALWAYS, Event.TEST)
]
WEBHOOK_CHOICES = [
    # Each reader's workload is another one.
    *(one for one in CHOICES if one[0] != Event.WORKLOAD),
    (str(Event.BREAK_GLASS_USED), Event.BREAK_GLASS_USED.label),
]
# Switched on for whoever gives an address: what waits for people, and what was stopped.
USUAL = [
    Event.APPROVAL_NEEDED,
    Event.APPROVAL_REMINDER,
    Event.OUTCOME_UNKNOWN,
    Event.DEFINITION_REVIEW,
    Event.SERVER_UNREACHABLE,
    Event.CALENDAR_FAILED,
    Event.TOKEN_EXPIRING,
    Event.AGENT_UNUSUAL,
    Event.VERIFICATION_FAILED,
    Event.BACKUP_FAILED,
    Event.STOP_BEGAN,
]
# An entry whose action is here is such an event.
BY_ACTION = {
    "call.held": Event.APPROVAL_NEEDED,
    # Others may decide it too by now.
    "approval.widened": Event.APPROVAL_NEEDED,
    # Votes fell, and other rules may ask other people about the new arguments.
    "call.amended": Event.APPROVAL_NEEDED,
    "call.approved": Event.APPROVAL_DECIDED,
    "call.denied": Event.APPROVAL_DECIDED,
    "call.expired": Event.APPROVAL_EXPIRED,
    "call.withdrawn": Event.APPROVAL_WITHDRAWN,
    "call.superseded": Event.APPROVAL_WITHDRAWN,
    "call.unknown": Event.OUTCOME_UNKNOWN,
    "definition.found": Event.DEFINITION_REVIEW,
    "definition.changed": Event.DEFINITION_REVIEW,
    "server.lost": Event.SERVER_UNREACHABLE,
    "server.reached": Event.SERVER_REACHABLE,
    "on_call_calendar.failed": Event.CALENDAR_FAILED,
    "on_call_calendar.recovered": Event.CALENDAR_RECOVERED,
    "token.expiring": Event.TOKEN_EXPIRING,
    "limit.reached": Event.LIMIT_REACHED,
    "agent.unusual": Event.AGENT_UNUSUAL,
    "audit.verification_failed": Event.VERIFICATION_FAILED,
    "backup.failed": Event.BACKUP_FAILED,
    "backup.check_failed": Event.BACKUP_FAILED,
    "workload.weekly": Event.WORKLOAD,
    "freeze.began": Event.STOP_BEGAN,
    "freeze.ended": Event.STOP_ENDED,
    "role.given": Event.ROLE_CHANGED,
    "role.requested": Event.ROLE_CHANGED,
    "role.taken": Event.ROLE_CHANGED,
    "role.changed": Event.ROLE_CHANGED,
    # Of groups that have no entry above: any may be named by a rule, and then decides.
    "person.groups_set": Event.ROLE_CHANGED,
    "break_glass.used": Event.BREAK_GLASS_USED,
    "delegation.made": Event.DELEGATION_MADE,
    "delegation.ended": Event.DELEGATION_ENDED,
    "recovery_code.used": Event.RECOVERY_CODE_USED,
    "person.new_device": Event.NEW_DEVICE,
    "person.factors_reset": Event.FACTORS_RESET,
    "password_reset.requested": Event.PASSWORD_RESET,
}


def event_of(action: str, from_state: str) -> Event | None:
    """The event that an entry is; None for a call that ended without a run after its approval."""
    event = BY_ACTION.get(action)
    is_later = event in (Event.APPROVAL_EXPIRED, Event.APPROVAL_WITHDRAWN) and from_state != "held"
    return None if is_later else event
