"""The states of a call and the only moves between them, as data for code, database and docs."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class State(models.TextChoices):
    REFUSED = "refused", _("Blocked by policy")
    INVALID = "invalid", _("Invalid request")
    HELD = "held", _("Pending approval")
    APPROVED = "approved", _("Approved")
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    SUCCEEDED = "succeeded", _("Succeeded")
    TOOL_ERROR = "tool_error", _("Tool error")
    FAILED = "failed", _("Failed")
    TIMED_OUT = "timed_out", _("Timed out")
    CANCELLED = "cancelled", _("Cancelled")
    UNKNOWN = "unknown", _("Outcome unknown")
    DENIED = "denied", _("Denied")
    EXPIRED = "expired", _("Expired")
    WITHDRAWN = "withdrawn", _("Withdrawn")
    SUPERSEDED = "superseded", _("Superseded")
    RESOLVED = "resolved", _("Resolved")


class Executed(models.TextChoices):
    YES = "yes", _("Executed")
    NO = "no", _("Not executed")
    UNKNOWN = "unknown", _("Possibly executed")
    # The server answered that it did not do it, or refused: its own word, and nobody else's.
    REPORTED = "reported", _("As the server reported")


# How a call is born. An allowed short call is opened and sent in one commit: born running.
FIRST = (State.REFUSED, State.INVALID, State.HELD, State.QUEUED, State.RUNNING)

MOVES: dict[State, tuple[State, ...]] = {
    State.HELD: (
        State.APPROVED,
        State.DENIED,
        State.EXPIRED,
        State.WITHDRAWN,
        State.SUPERSEDED,
        State.UNKNOWN,
    ),
    # Unknown, of what never ran here: a restored backup does not say what came after it
    # (calls/restoring.py).
    State.APPROVED: (State.QUEUED, State.UNKNOWN),
    State.QUEUED: (
        State.RUNNING,
        State.CANCELLED,
        State.EXPIRED,
        State.SUPERSEDED,
        State.UNKNOWN,
    ),
    State.RUNNING: (
        State.SUCCEEDED,
        State.TOOL_ERROR,
        State.FAILED,
        State.TIMED_OUT,
        State.CANCELLED,
        State.UNKNOWN,
        # Again, where the database agrees: REPEATABLE.
        State.QUEUED,
    ),
    State.UNKNOWN: (State.RESOLVED,),
}

# SQL over the old row `o` and the new row `n`: a call that ran goes back to the queue only when
# nothing was sent, or when an operator said that repeating its tool does no harm.
REPEATABLE = """
    n.executed = 'no'
    OR (SELECT t.safe_to_repeat FROM registry_tool t WHERE t.id = n.tool_id) IS TRUE
"""
# So often is a call started at most; its fence counts.
ATTEMPTS = 3

LIVE = (State.HELD, State.APPROVED, State.QUEUED, State.RUNNING)
# An emergency stop keeps it from going on.
NOT_STARTED = (State.HELD, State.APPROVED, State.QUEUED)
TERMINAL = tuple(state for state in State if state not in LIVE)
# Never sent, whatever else happened.
NOT_SENT = (
    State.REFUSED,
    State.INVALID,
    State.DENIED,
    State.EXPIRED,
    State.WITHDRAWN,
    State.SUPERSEDED,
)
