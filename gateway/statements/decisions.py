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
from approvals.statements import ALLOWED, APPROVED, decision_of
from audit.demo import is_demo
from calls.models import Call
from calls.record.new_call import digest
from core.english import gettext as _
from gateway.submit import description

# A program acts upon an approval within this time; `exp` says so to every library.
VALID = timedelta(hours=1)


def described(call: Call) -> dict[str, Any]:
    """`decision` and `signed_decision` are null until the decision is final. A decision whose
    statement cannot be shown any more is not signed: its signature would be bound to none."""
    known = description.in_short(call)
    for name in ("tool", "toolset", "state"):
        del known[name]
    approval = Approval.objects.filter(pk=call.pk).first()
    word = decision_of(call, approval)
    hidden = _why_hidden(call)
    members = {
        "decision": word,
        "reason": call.reason,
        "outcome": call.outcome or None,
        "statement": None if hidden else _statement(call),
        "signed_decision": sign(_claims(call, approval, word)) if word and not hidden else None,
        "unsigned_reason": hidden if word and hidden else None,
    }
    return {**known, **members}


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


def _statement(call: Call) -> orjson.Fragment:
    """The decided statement, as it was written."""
    return orjson.Fragment(call.to_send)


def _digest(call: Call) -> str:
    """The SHA-256 of the statement in canonical JSON (RFC 8785)."""
    return hashlib.sha256(rfc8785.dumps(call.parsed_arguments)).hexdigest()


def _why_hidden(call: Call) -> str:
    """The reason why the decided statement is not shown; "" if it is."""
    if digest(call.to_send) != (call.amendment or call).arguments_digest:
        # Its digest outlives an erased payload, and is of other bytes than the empty object there.
        return _("The payload was erased.")
    if call.amendment_id is not None and call.amendments.filter(private=True).exists():
        return _("An approver changed the statement in private.")
    return ""
