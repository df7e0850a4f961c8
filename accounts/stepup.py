"""A person's own act behind one statement: what their passkey signs, a one-time code, or a new
sign-in at their identity provider (accounts/oidc/step_up.py).

A session can be stolen, and an agent may sit at the keyboard. What a passkey signs is the digest of
a statement that is made here, whole and for this once; the row keeps the statement and the answer,
so that anybody with the rows can check it again. A code proves only that whoever had the session
also saw the app: weaker, and recorded as such.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from webauthn import (
    base64url_to_bytes,
    generate_authentication_options,
    options_to_json,
    verify_authentication_response,
)
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import PublicKeyCredentialDescriptor, UserVerificationRequirement

from accounts import one_time_codes, passkeys
from accounts.models import Identity, Passkey, Proof, User
from accounts.oidc.metadata import ProviderFailed
from accounts.oidc.signed_tokens import verify_again
from accounts.relying_party import expected_origins, rp_id
from core import seal
from core.english import gettext
from core.english import gettext as _
from core.errors import CountersignError

_UNREADABLE = gettext("The passkey's answer cannot be read. Press the button again.")
WRONG_CODE = gettext("The code is wrong, or was used before. Wait for the app's next one.")
VALID_S = 300
ANSWER_MAX = 16 * 1024


class NotProven(CountersignError):
    """Says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """Makes a statement one of a kind, and says until when it may be agreed to."""

    nonce: str
    issued: int

    @classmethod
    def new(cls) -> Ticket:
        return cls(secrets.token_hex(16), int(time.time()))

    @property
    def lines(self) -> str:
        return f"at: {self.issued}\nnonce: {self.nonce}\n"


def offer(person: User, ticket: Ticket, statement: str) -> dict[str, Any]:
    """The options that the browser's passkey script needs, and the ticket to send back."""
    keys = person.passkeys.usable().filter(rp_id=rp_id())
    options = generate_authentication_options(
        rp_id=rp_id(),
        challenge=challenge(statement),
        allow_credentials=[PublicKeyCredentialDescriptor(id=bytes(k.credential_id)) for k in keys],
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return {
        "publicKey": json.loads(options_to_json(options)),
        "statement": statement,
        "ticket": f"{ticket.issued}.{ticket.nonce}.{_seal(person, ticket, statement)}",
    }


def read_ticket(text: str) -> Ticket:
    """Reads the ticket that came back; only `prove` checks that it is ours. Raises NotProven."""
    issued, _dot, rest = text.partition(".")
    nonce = rest.partition(".")[0]
    if not (issued.isdecimal() and len(issued) < 15 and len(nonce) == 32):
        raise NotProven(_("The confirmation is incomplete. Press the button again."))
    return Ticket(nonce, int(issued))


def prove(person: User, statement: str, *, ticket: str, answer: str) -> Proof:
    """Keeps the proof that this person's passkey signed `statement`. Raises NotProven."""
    read = read_ticket(ticket)
    genuine = f"{read.issued}.{read.nonce}.{_seal(person, read, statement)}"
    if not secrets.compare_digest(ticket.encode(), genuine.encode()):
        raise NotProven(_("What was confirmed is not this decision. Press the button again."))
    if not -5 <= time.time() - read.issued <= VALID_S:
        raise NotProven(_("The confirmation came too late. Press the button again."))
    return keep_signature(_passkey(person, answer), statement, answer)


def keep_signature(passkey: Passkey, statement: str, answer: str) -> Proof:
    """Keeps the proof that this passkey signed `statement`. Raises NotProven."""
    origin = _origin(answer)
    count = _verified(passkey, statement, answer, origin, floor=passkey.sign_count)
    _count(passkey, count)
    return _keep(
        person=passkey.person,
        method=Proof.Method.PASSKEY,
        statement=statement,
        passkey=passkey,
        assertion=answer,
        origin=origin,
        sign_count=count,
    )


def prove_by_code(person: User, statement: str, *, code: str) -> Proof:
    """The weaker way. Raises NotProven and TooManyAttempts."""
    if not one_time_codes.spend(person, code):
        raise NotProven(WRONG_CODE)
    return keep_code_proof(person, statement)


def keep_code_proof(person: User, statement: str) -> Proof:
    """Keeps that a code, which the caller checked, was given for `statement`."""
    return _keep(person=person, method=Proof.Method.TOTP, statement=statement)


def keep_provider_proof(person: User, statement: str, evidence: str) -> Proof:
    """Keeps that `statement` was confirmed at an identity provider; `evidence`: its ID token, which
    the caller checked, and the key that signed it."""
    return _keep(person=person, method=Proof.Method.OIDC, statement=statement, assertion=evidence)


def key_digest(key: dict[str, Any]) -> str:
    """Names a provider's key in entries."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


def problem(proof: Proof) -> str:
    """Checks a kept proof again from its rows alone: what is wrong with it, or nothing."""
    if hashlib.sha256(proof.statement.encode()).hexdigest() != proof.statement_digest:
        return _("the statement is not what its digest says")
    match proof.method:
        case Proof.Method.TOTP:
            return ""
        case Proof.Method.OIDC:
            return _provider_problem(proof)
    return _passkey_problem(proof)


def _provider_problem(proof: Proof) -> str:
    try:
        kept = json.loads(proof.assertion)
        claims = verify_again(kept["id_token"], kept["key"])
    except (ProviderFailed, ValueError, KeyError, TypeError):
        return _("the provider's signature is not valid")
    if claims.get("nonce") != proof.statement_digest:
        return _("the provider signed another statement")
    names = {"issuer": claims.get("iss"), "subject": claims.get("sub")}
    if not Identity.objects.filter(person=proof.person_id, **names).exists():
        return _("the account at the provider is not this person's")
    return ""


def _passkey_problem(proof: Proof) -> str:
    passkey = proof.passkey
    if passkey is None or passkey.person_id != proof.person_id:
        return _("the passkey is not this person's")
    try:
        count = _verified(passkey, proof.statement, proof.assertion, proof.origin, floor=0)
    except NotProven as error:
        return str(error)
    return "" if count == proof.sign_count else _("the passkey counted to another number")


def _verified(passkey: Passkey, statement: str, answer: str, origin: str, *, floor: int) -> int:
    """The passkey's counter after it; raises NotProven."""
    try:
        verified = verify_authentication_response(
            credential=answer,
            expected_challenge=challenge(statement),
            expected_rp_id=passkey.rp_id,
            expected_origin=origin,
            credential_public_key=bytes(passkey.public_key),
            credential_current_sign_count=floor,
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError, KeyError, TypeError) as error:
        raise NotProven(
            _("The passkey's answer does not fit this decision. Press the button again.")
        ) from error
    return verified.new_sign_count


def _passkey(person: User, answer: str) -> Passkey:
    credential_id = _credential_id(answer)
    found = person.passkeys.usable().filter(credential_id=credential_id).first()
    if found is None:
        raise NotProven(_("This passkey is not one of yours. Use one that your profile lists."))
    return found


def discovered_passkey(answer: str) -> Passkey:
    """The passkey that a device chose, with the user that it was made for (WebAuthn 3, 7.2 step 6).
    Raises NotProven."""
    credential_id = _credential_id(answer)
    usable = Passkey.objects.usable().filter(rp_id=rp_id()).select_related("person")
    found = usable.filter(credential_id=credential_id).first()
    try:
        user = base64url_to_bytes(json.loads(answer)["response"]["userHandle"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotProven(str(_UNREADABLE)) from error
    if found is None or not passkeys.is_user_of(found, user):
        raise NotProven(_("This passkey is not one of yours. Use one that your profile lists."))
    return found


def _credential_id(answer: str) -> bytes:
    if len(answer) > ANSWER_MAX:
        raise NotProven(_("The passkey's answer is too long."))
    try:
        return base64url_to_bytes(json.loads(answer)["rawId"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotProven(str(_UNREADABLE)) from error


def _origin(answer: str) -> str:
    """Which of ours the browser says it was given at; the signature covers its word."""
    try:
        client = base64url_to_bytes(json.loads(answer)["response"]["clientDataJSON"])
        origin = json.loads(client)["origin"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotProven(str(_UNREADABLE)) from error
    if origin not in expected_origins():
        raise NotProven(_("The passkey was used for another site."))
    return str(origin)


def _count(passkey: Passkey, count: int) -> None:
    # Of two answers that come at once with the same counter, one is a copy.
    fresh = Passkey.objects.filter(pk=passkey.pk, removed_at=None, sign_count=passkey.sign_count)
    if not fresh.update(sign_count=count, last_used_at=timezone.now()):
        raise NotProven(_("The passkey was used elsewhere at this moment. Press the button again."))


def _keep(**values: Any) -> Proof:
    digest = hashlib.sha256(values["statement"].encode()).hexdigest()
    try:
        with transaction.atomic():
            return Proof.objects.create(statement_digest=digest, **values)
    except IntegrityError as error:
        raise NotProven(_("This confirmation was used before. Press the button again.")) from error


def _seal(person: User, ticket: Ticket, statement: str) -> str:
    text = f"{person.pk}\n{ticket.issued}\n{ticket.nonce}\n{statement}"
    return seal.to_text(seal.sign("step-up ticket", text.encode()))


def challenge(statement: str) -> bytes:
    """The bytes that a passkey signs of it."""
    return hashlib.sha256(statement.encode()).digest()
