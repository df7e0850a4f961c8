"""Events that people and programs are notified of, and the entries that are those events."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Event(models.TextChoices):
    APPROVAL_NEEDED = "approval.needed", _("Approval needed")
    APPROVAL_REMINDER = "approval.reminder", _("Reminder before a pending call expires")
    APPROVAL_DECIDED = "approval.decided", _("A pending call was approved or denied")
    APPROVAL_EXPIRED = "approval.expired", _("A pending call expired")
    OUTCOME_UNKNOWN = "call.outcome_unknown", _("The outcome of a call is unknown")
    DEFINITION_REVIEW = "definition.review_needed", _("Definitions to review")
    SERVER_UNREACHABLE = "server.unreachable", _("A server is unreachable")
    SERVER_REACHABLE = "server.reachable", _("A server is reachable")
    STOP_BEGAN = "emergency_stop.began", _("An emergency stop began")
    STOP_ENDED = "emergency_stop.ended", _("An emergency stop ended")
    ROLE_CHANGED = "role.changed", _("A role that decides was given, requested or taken away")
    RECOVERY_CODE_USED = "recovery_code.used", _("A recovery code was used")
    NEW_DEVICE = "person.new_device", _("Somebody signed in on a new device")
    PASSWORD_RESET = "password_reset.requested", _("A link for a new password was asked for")
    TEST = "test", _("Test message")


# On somebody's own account: mail and pushes to that person alone, whatever they chose, and to no
# webhook.
PERSONAL = (Event.RECOVERY_CODE_USED, Event.NEW_DEVICE, Event.PASSWORD_RESET)
# Nobody subscribes to a test; it goes where it was asked for.
CHOICES = [
    (str(value), label) for value, label in Event.choices if value not in (*PERSONAL, Event.TEST)
]
# Switched on for whoever gives an address: what waits for people, and what was stopped.
USUAL = [
    Event.APPROVAL_NEEDED,
    Event.APPROVAL_REMINDER,
    Event.OUTCOME_UNKNOWN,
    Event.DEFINITION_REVIEW,
    Event.SERVER_UNREACHABLE,
    Event.STOP_BEGAN,
]
# An entry whose action is here is such an event.
BY_ACTION = {
    "call.held": Event.APPROVAL_NEEDED,
    "call.approved": Event.APPROVAL_DECIDED,
    "call.denied": Event.APPROVAL_DECIDED,
    "call.expired": Event.APPROVAL_EXPIRED,
    "call.unknown": Event.OUTCOME_UNKNOWN,
    "definition.found": Event.DEFINITION_REVIEW,
    "definition.changed": Event.DEFINITION_REVIEW,
    "server.lost": Event.SERVER_UNREACHABLE,
    "server.reached": Event.SERVER_REACHABLE,
    "freeze.began": Event.STOP_BEGAN,
    "freeze.ended": Event.STOP_ENDED,
    "role.given": Event.ROLE_CHANGED,
    "role.requested": Event.ROLE_CHANGED,
    "role.taken": Event.ROLE_CHANGED,
    "recovery_code.used": Event.RECOVERY_CODE_USED,
    "person.new_device": Event.NEW_DEVICE,
    "password_reset.requested": Event.PASSWORD_RESET,
}


def event_of(action: str, from_state: str) -> Event | None:
    """The event that an entry is; None for a call that expired after its approval."""
    event = BY_ACTION.get(action)
    return None if event == Event.APPROVAL_EXPIRED and from_state != "held" else event
