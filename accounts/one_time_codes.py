"""One-time codes of authenticator apps (TOTP): set-up, verification, removal. A code works once."""

from __future__ import annotations

import hmac
import io
import time

import pyotp
import segno
from django.db import transaction
from django.utils import timezone

from accounts import attempts
from accounts.models import Attempt, CodeApp, User
from accounts.sessions import check_open
from audit.services import record
from core import seal
from core.english import gettext as _
from core.errors import CountersignError
from core.sealed_fields import SealedField

PURPOSE = "code app"
STEP_S = 30
# Clocks differ: one step before and one after are good too.
NEAR = (0, -1, 1)


class CodeRefused(CountersignError):
    """The code or the set-up is refused; says why and what to do."""


@transaction.atomic
def begin(person: User) -> CodeApp:
    """Creates a secret, which is active from its first valid code on. Replaces an unfinished
    one."""
    if CodeApp.objects.filter(person=person).exclude(confirmed_at=None).exists():
        raise CodeRefused(_("You have an app already. Remove it first."))
    sealed = seal.seal(PURPOSE, pyotp.random_base32(32).encode(), place=_place(person))
    app, _made = CodeApp.objects.update_or_create(
        person=person, defaults={"sealed_secret": sealed, "last_step": 0}
    )
    return app


@transaction.atomic
def confirm(person: User, code: str, *, session_key: str | None = None) -> None:
    """`session_key`: of the session that sets it up. Raises CodeRefused and AccountRefused."""
    # So does who removes factors (accounts/factor_resets.py): this comes before or after it.
    User.objects.select_for_update().get(pk=person.pk)
    # A removal ends sessions: one that is ended adds nothing.
    check_open(session_key)
    app = CodeApp.objects.filter(person=person, confirmed_at=None).first()
    if app is None:
        raise CodeRefused(_("There is nothing to confirm. Begin again."))
    if not _spend(app, code):
        raise CodeRefused(
            _("That is not the code that the app shows now. Is your device's clock right?")
        )
    CodeApp.objects.filter(pk=app.pk).update(confirmed_at=timezone.now())
    record("code_app.added", actor=person.actor, person=person.username)


@transaction.atomic
def remove(person: User) -> bool:
    removed, _rows = CodeApp.objects.filter(person=person).delete()
    if removed:
        record("code_app.removed", actor=person.actor, person=person.username)
    return bool(removed)


def spend(person: User, code: str) -> bool:
    """Whether the code is valid and unused; marks it as used. Raises TooManyAttempts."""
    if not _confirmed(person):
        return False
    attempt = attempts.begin(Attempt.Kind.CODE, person)
    if use(person, code):
        attempts.right(attempt)
        return True
    attempts.wrong(attempt, person.username)
    return False


def use(person: User, code: str) -> bool:
    """Does what `spend` does, for a caller that counts the tries itself."""
    app = _confirmed(person)
    return app is not None and _spend(app, code)


def secret(app: CodeApp) -> str:
    return seal.unseal(PURPOSE, bytes(app.sealed_secret), place=_place(app.person)).decode()


def picture(app: CodeApp) -> bytes:
    """The secret as a QR code, in SVG."""
    address = pyotp.TOTP(secret(app)).provisioning_uri(
        name=app.person.username, issuer_name="Countersign"
    )
    drawn = io.BytesIO()
    segno.make(address, error="m").save(drawn, kind="svg", scale=5, border=3, light="#ffffff")
    return drawn.getvalue()


def _confirmed(person: User) -> CodeApp | None:
    return CodeApp.objects.filter(person=person).exclude(confirmed_at=None).first()


def _spend(app: CodeApp, code: str) -> bool:
    given = "".join(code.split())
    step = _step_of(secret(app), given)
    # The update decides: of two who send the same code at once, one is right.
    unused = CodeApp.objects.filter(pk=app.pk, last_step__lt=step)
    return bool(step and unused.update(last_step=step))


def _step_of(text: str, given: str) -> int:
    """The number of the 30-second step that the code belongs to; 0 if it fits none nearby."""
    totp, now = pyotp.TOTP(text), int(time.time()) // STEP_S
    for step in (now + near for near in NEAR):
        if hmac.compare_digest(totp.at(step * STEP_S).encode(), given.encode(errors="replace")):
            return step
    return 0


def _place(person: User) -> str:
    return f"person {person.pk}"


SEALED = (SealedField(CodeApp, "sealed_secret", PURPOSE, lambda app: _place(app.person)),)
