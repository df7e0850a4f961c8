"""A statement and the decision on it, for the program that asked and for those who verify it."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import orjson
import rfc8785
from django.conf import settings

from approvals.decision_keys import sign
from approvals.models import Approval
from audit.demo import is_demo
from calls.models import Call
from calls.record.states import TERMINAL, State
from gateway.submit import description

# A program acts upon an approval within this time; `exp` says so to every library.
VALID = timedelta(hours=1)
APPROVED, ALLOWED, FAILED = "approved", "allowed", "failed"
WORDS = {
    State.REFUSED: "blocked",
    State.DENIED: "denied",
    State.EXPIRED: "expired",
    State.WITHDRAWN: "withdrawn",
    State.SUPERSEDED: "superseded",
    State.CANCELLED: "withdrawn",
}


def described(call: Call) -> dict[str, Any]:
    """`decision` and `signed_decision` are null while people decide."""
    known = description.in_short(call)
    for name in ("tool", "toolset", "state"):
        del known[name]
    approval = Approval.objects.filter(pk=call.pk).first()
    word = decision_of(call, approval)
    signed = sign(_claims(call, approval, word)) if word else None
    members = {"decision": word, "reason": call.reason, "outcome": call.outcome or None}
    return {**known, **members, "statement": _statement(call), "signed_decision": signed}


def decision_of(call: Call, approval: Approval | None) -> str | None:
    """None: there is no decision yet. What failed on its way after an approval is not approved."""
    if call.state not in TERMINAL:
        return None
    if call.state != State.SUCCEEDED:
        return WORDS.get(State(call.state), FAILED)
    return APPROVED if approval and approval.state == Approval.State.APPROVED else ALLOWED


def _claims(call: Call, approval: Approval | None, word: str) -> dict[str, Any]:
    decided_at = (approval and approval.decided_at) or call.finished_at or call.asked_at
    claims = {
        "iss": settings.PUBLIC_URL,
        "sub": call.agent.name,
        "jti": str(call.pk),
        "iat": int(decided_at.timestamp()),
        "decision": word,
        "statement": _statement(call),
        "statement_sha256": _digest(call),
        "edited": call.amendment_id is not None,
        "fingerprint": call.fingerprint,
        "votes": _votes(approval) if approval else [],
    }
    if word in (APPROVED, ALLOWED):
        claims["exp"] = int((decided_at + VALID).timestamp())
    if is_demo():
        # Whoever verifies it sees no banner.
        claims["demo"] = True
    return claims


def _votes(approval: Approval) -> list[dict[str, Any]]:
    """`proof`: "passkey", "totp", "oidc", or "" where being signed in was enough."""
    return [
        {
            "name": vote.person.username,
            "approve": vote.approve,
            "at": int(vote.at.timestamp()),
            "proof": vote.step_up,
        }
        for vote in approval.standing.select_related("person")
    ]


def _statement(call: Call) -> orjson.Fragment | None:
    """The decided statement, as it was written. None where an approver changed it and did not
    show how."""
    return None if _is_hidden(call) else orjson.Fragment(call.to_send)


def _digest(call: Call) -> str | None:
    """The SHA-256 of the statement in canonical JSON (RFC 8785)."""
    if _is_hidden(call):
        return None
    return hashlib.sha256(rfc8785.dumps(call.parsed_arguments)).hexdigest()


def _is_hidden(call: Call) -> bool:
    return call.amendment_id is not None and call.amendments.filter(private=True).exists()
