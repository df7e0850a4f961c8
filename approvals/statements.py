"""Statements that people countersign, and the decisions on them.

A statement is a call of a tool that does nothing: its decision is final once that call has ended,
since a worker checks rules and emergency stops once more after people have approved.
"""

from __future__ import annotations

from django.conf import settings

from approvals.models import Approval
from calls.models import Call
from calls.record.states import TERMINAL, State

APPROVED, ALLOWED, FAILED = "approved", "allowed", "failed"
WORDS = {
    State.REFUSED: "blocked",
    State.INVALID: "invalid",
    State.DENIED: "denied",
    State.EXPIRED: "expired",
    State.WITHDRAWN: "withdrawn",
    State.SUPERSEDED: "superseded",
    State.CANCELLED: "withdrawn",
}


def is_statement(call: Call) -> bool:
    return call.server is not None and call.server.argv == settings.STATEMENTS_ARGV


def decision_of(call: Call, approval: Approval | None) -> str | None:
    """None: there is no decision yet. What failed on its way after an approval is not approved."""
    if call.state not in TERMINAL:
        return None
    if call.state != State.SUCCEEDED:
        return WORDS.get(State(call.state), FAILED)
    return APPROVED if approval and approval.state == Approval.State.APPROVED else ALLOWED
