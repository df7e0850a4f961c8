"""Signing in with a passkey alone: the device says who it is, and asked for its person.

The challenge is kept in the session that asked for it, and is good for one answer.
"""

from __future__ import annotations

import json
import time
from typing import Any

from django.http import HttpRequest
from webauthn import generate_authentication_options, options_to_json
from webauthn.helpers.structs import UserVerificationRequirement

from accounts import attempts, stepup
from accounts.backend import Backend
from accounts.models import User
from accounts.relying_party import rp_id
from accounts.stepup import VALID_S, NotProven, Ticket
from core.english import gettext as _

PENDING = "passkey_sign_in"
BY_PASSKEY = _("By passkey.")
# One sentence for all: which passkeys are known here is nobody's business.
REFUSED = _("This passkey signs nobody in here. Use another one, or your password.")


def offer(request: HttpRequest) -> dict[str, Any]:
    """Options for the browser's script; they name nobody."""
    ticket = Ticket.new()
    request.session[PENDING] = [ticket.nonce, ticket.issued]
    options = generate_authentication_options(
        rp_id=rp_id(),
        challenge=stepup.challenge(_statement(ticket)),
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return {"publicKey": json.loads(options_to_json(options)), "ticket": ""}


def prove(request: HttpRequest, answer: str) -> User:
    """The person who signed in, by the browser's answer. Raises NotProven and TooManyAttempts."""
    # Taken out first: it is good for one answer.
    ticket = Ticket(*request.session.pop(PENDING, ["", 0]))
    attempt = attempts.begin_passkey(request)
    try:
        person = _prove(ticket, answer)
    except NotProven:
        attempts.wrong(attempt, "")
        raise NotProven(REFUSED) from None
    attempts.right(attempt)
    return person


def _prove(ticket: Ticket, answer: str) -> User:
    if not ticket.nonce or not 0 <= time.time() - ticket.issued <= VALID_S:
        raise NotProven(REFUSED)
    passkey = stepup.discovered_passkey(answer)
    person = Backend().get_user(passkey.person_id)
    if person is None:
        raise NotProven(REFUSED)
    stepup.keep_signature(passkey, _statement(ticket), answer)
    return person


def _statement(ticket: Ticket) -> str:
    return f"Countersign: sign in with a passkey\n{ticket.lines}"
