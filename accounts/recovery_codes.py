"""Recovery codes: ten for each person, for sign-ins without the device. Each works once."""

from __future__ import annotations

import secrets

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import RecoveryCode, User
from audit.services import record
from core import seal

COUNT = 10
PURPOSE = "recovery code"
METHOD = "recovery_code"
# 49 bits a code, in letters and digits that are not taken for each other.
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
LENGTH = 10


@transaction.atomic
def make(person: User) -> list[str]:
    """New codes, which are not stored: show them now or never. Those before are void."""
    # Of two who make some at once, the second voids the first's.
    User.objects.select_for_update(of=("self",)).get(pk=person.pk)
    voided = remove(person)
    codes = [_code() for _number in range(COUNT)]
    made = [RecoveryCode(person=person, digest=_digest(person, code)) for code in codes]
    RecoveryCode.objects.bulk_create(made)
    record(
        "recovery_codes.made",
        actor=person.actor,
        person=person.username,
        codes=COUNT,
        voided=voided,
    )
    return codes


@transaction.atomic
def use(person: User, code: str, *, address: str) -> bool:
    """Whether the code is valid and unused; marks it as used. The caller counts the tries."""
    found = _find(person, code)
    # The update decides: of two who send the same code at once, one is right.
    if found is None or not _unused(person).filter(pk=found.pk).update(used_at=timezone.now()):
        return False
    record(
        "recovery_code.used",
        actor=person.actor,
        person=person.username,
        left=count_left(person),
        address=address,
    )
    return True


def count_left(person: User) -> int:
    return _unused(person).count()


def remove(person: User) -> int:
    """Removes all of them; returns how many were unused."""
    left = count_left(person)
    RecoveryCode.objects.filter(person=person).delete()
    return left


def _unused(person: User) -> QuerySet[RecoveryCode]:
    return RecoveryCode.objects.filter(person=person, used_at=None)


def _find(person: User, code: str) -> RecoveryCode | None:
    message = _message(person, code)
    return next(
        (one for one in _unused(person) if seal.is_signature(PURPOSE, message, bytes(one.digest))),
        None,
    )


def _code() -> str:
    text = "".join(secrets.choice(ALPHABET) for _place in range(LENGTH))
    return f"{text[:5]}-{text[5:]}"


def _digest(person: User, code: str) -> bytes:
    return seal.sign(PURPOSE, _message(person, code))


def _message(person: User, code: str) -> bytes:
    """In one form, however it was typed."""
    typed = "".join(one for one in code.lower() if one.isalnum())
    return f"{person.pk}.{typed}".encode(errors="replace")
