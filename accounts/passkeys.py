"""Passkeys of people: added, named, removed; each with its entry."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from webauthn import (
    base64url_to_bytes,
    generate_registration_options,
    options_to_json,
    verify_registration_response,
)
from webauthn.helpers import bytes_to_base64url
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from accounts.models import Passkey, User
from accounts.relying_party import expected_origins, rp_id
from accounts.sessions import check_open
from audit.services import record
from core import seal
from core.english import gettext as _
from core.errors import CountersignError

PASSKEYS_MAX = 20
ANSWER_MAX = 64 * 1024
NAME_MAX = 60
USER = "passkey user"
USER_BYTES = 32


class PasskeyRefused(CountersignError):
    """Says why, and what to do."""


def options(person: User) -> tuple[dict[str, Any], str]:
    """Options for the browser's script, and the challenge, to be kept in the session."""
    if person.passkeys.usable().count() >= PASSKEYS_MAX:
        raise PasskeyRefused(_("You have %d passkeys, the most there can be.") % PASSKEYS_MAX)
    challenge = secrets.token_bytes(32)
    known = [bytes(key.credential_id) for key in person.passkeys.usable()]
    made = generate_registration_options(
        rp_id=rp_id(),
        rp_name="Countersign",
        user_name=person.username,
        # Says nothing about the person, and is the same for all of their passkeys.
        user_id=seal.sign(USER, str(person.pk).encode()),
        challenge=challenge,
        exclude_credentials=[PublicKeyCredentialDescriptor(id=key) for key in known],
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.PREFERRED,
            user_verification=UserVerificationRequirement.REQUIRED,
        ),
    )
    return json.loads(options_to_json(made)), bytes_to_base64url(challenge)


@transaction.atomic
def add(
    person: User, name: str, *, challenge: str, answer: str, session_key: str | None = None
) -> Passkey:
    """`session_key`: of the session that adds it. Raises PasskeyRefused and AccountRefused."""
    if len(answer) > ANSWER_MAX:
        raise PasskeyRefused(_("The device's answer is too long."))
    try:
        verified = verify_registration_response(
            credential=answer,
            expected_challenge=base64url_to_bytes(challenge),
            expected_rp_id=rp_id(),
            expected_origin=expected_origins(),
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError, KeyError, TypeError) as error:
        raise PasskeyRefused(
            _("The device's answer does not fit: it was for another site, person or moment. "
              "Try again.")
        ) from error  # fmt: skip
    # So does who removes factors (accounts/factor_resets.py): this comes before or after it.
    User.objects.select_for_update().get(pk=person.pk)
    # A removal ends sessions: one that is ended adds nothing.
    check_open(session_key)
    passkey = Passkey(
        person=person,
        name=_named(name),
        credential_id=verified.credential_id,
        public_key=verified.credential_public_key,
        rp_id=rp_id(),
        sign_count=verified.sign_count,
        synced=verified.credential_backed_up,
    )
    try:
        with transaction.atomic():
            passkey.save()
    except IntegrityError as error:
        raise PasskeyRefused(_("This passkey is known already.")) from error
    _record("passkey.added", passkey)
    return passkey


@transaction.atomic
def rename(passkey: Passkey, name: str) -> None:
    Passkey.objects.filter(pk=passkey.pk).update(name=_named(name))
    passkey.refresh_from_db()
    _record("passkey.named", passkey)


@transaction.atomic
def remove(passkey: Passkey) -> None:
    gone = Passkey.objects.usable().filter(pk=passkey.pk).update(removed_at=timezone.now())
    if gone:
        _record("passkey.removed", passkey)


def key_digest(passkey: Passkey) -> str:
    return hashlib.sha256(bytes(passkey.public_key)).hexdigest()


def is_user_of(passkey: Passkey, user: bytes) -> bool:
    """Whether the passkey's device says the user that it was made for, under this secret or an old
    one."""
    person = str(passkey.person_id).encode()
    return len(user) == USER_BYTES and seal.is_signature(USER, person, user)


def _named(name: str) -> str:
    return name.strip()[:NAME_MAX] or _("Passkey")


def _record(action: str, passkey: Passkey) -> None:
    record(
        action,
        actor=passkey.person.actor,
        person=passkey.person.username,
        passkey=passkey.name,
        passkey_id=passkey.pk,
        public_key=key_digest(passkey),
    )
