"""The second factor at sign-in: a passkey or a code is asked for after the first step.

Between the two the session holds who passed the first step, and nobody is signed in.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from accounts import attempts, one_time_codes, passkeys, recovery_codes, role_changes, stepup
from accounts.actors import COMMAND_LINE
from accounts.backend import Backend
from accounts.models import BrowserSession, RoleChange, User
from accounts.sessions import ProviderSession, end_by, note_provider_session
from accounts.stepup import VALID_S, NotProven, Ticket
from audit.services import record
from core.client_address import client_address
from core.english import gettext as _

PENDING = "second_factor"
WRONG_RECOVERY_CODE = _("The recovery code is wrong, or was used before.")


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in after its first step, kept in the session; `first_step` is the entry's reason."""

    person: int
    # Disabling the person and a new password change it.
    session_hash: str
    issued: int
    nonce: str
    first_step: str
    next_page: str
    # A hash, set once the second step is done.
    new_password: str = ""
    # Of a first step at an identity provider.
    provider_session: dict[str, Any] | None = None

    @property
    def ticket(self) -> Ticket:
        return Ticket(self.nonce, self.issued)

    @property
    def at_provider(self) -> ProviderSession | None:
        return ProviderSession(**self.provider_session) if self.provider_session else None


def begin(
    request: HttpRequest,
    person: User,
    *,
    first_step: str,
    next_page: str,
    new_password: str = "",
    provider_session: ProviderSession | None = None,
) -> None:
    """Keeps who passed the first step, for five minutes, under another session key."""
    ticket = Ticket.new()
    pending = PendingSignIn(
        person=person.pk,
        session_hash=person.get_session_auth_hash(),
        issued=ticket.issued,
        nonce=ticket.nonce,
        first_step=first_step,
        next_page=next_page,
        new_password=new_password,
        provider_session=asdict(provider_session) if provider_session else None,
    )
    request.session[PENDING] = asdict(pending)
    request.session.cycle_key()
    if provider_session:
        note_provider_session(request, person, provider_session)


def pending(request: HttpRequest) -> tuple[PendingSignIn, User] | None:
    """None if nobody passed the first step here, or too long ago, or may not sign in any more."""
    kept = request.session.get(PENDING)
    if kept is None:
        return None
    read = PendingSignIn(**kept)
    person = Backend().get_user(read.person)
    if person is None or not 0 <= time.time() - read.issued <= VALID_S:
        return None
    is_bound = constant_time_compare(read.session_hash, person.get_session_auth_hash())
    return (read, person) if is_bound else None


def end(request: HttpRequest) -> None:
    request.session.pop(PENDING, None)


def offer(waiting: PendingSignIn, person: User) -> dict[str, Any]:
    return stepup.offer(person, waiting.ticket, _statement(waiting, person))


def prove(request: HttpRequest, waiting: PendingSignIn, person: User) -> str:
    """The method that proved it: the passkey's answer or one of the codes of the form. Raises
    NotProven and TooManyAttempts."""
    attempt = attempts.begin_second_factor(request, person)
    try:
        method = _prove(request, waiting, person)
    except NotProven:
        attempts.wrong(attempt, person.username)
        raise
    attempts.right(attempt)
    return method


def _prove(request: HttpRequest, waiting: PendingSignIn, person: User) -> str:
    statement = _statement(waiting, person)
    if answer := request.POST.get("answer", ""):
        ticket = request.POST.get("ticket", "")
        return stepup.prove(person, statement, ticket=ticket, answer=answer).method
    if code := request.POST.get("recovery_code", ""):
        if not recovery_codes.use(person, code, address=client_address(request)):
            raise NotProven(WRONG_RECOVERY_CODE)
        return recovery_codes.METHOD
    if not one_time_codes.use(person, request.POST.get("code", "")):
        raise NotProven(stepup.WRONG_CODE)
    return stepup.keep_code_proof(person, statement).method


def _statement(waiting: PendingSignIn, person: User) -> str:
    return f"Countersign: sign in\nperson: {person.username}\n{waiting.ticket.lines}"


@transaction.atomic
def reset_at_host(person: User) -> int:
    """Removes every passkey, the app and the recovery codes of somebody who lost them, and ends
    their sessions; returns how many passkeys and apps."""
    User.objects.select_for_update().get(pk=person.pk)
    count = remove_factors(person)
    theirs = BrowserSession.objects.filter(person=person)
    end_by(COMMAND_LINE, theirs, reason=_("The second factors were removed."))
    role_changes.note_of_host(person, RoleChange.State.ENTERED)
    reason = _("Lost, or locked out: the next sign-in asks for no second factor.")
    record(
        "person.factors_reset",
        actor=COMMAND_LINE,
        reason=reason,
        person=person.username,
        person_id=person.pk,
        removed=count,
    )
    return count


def remove_factors(person: User) -> int:
    """In the caller's transaction, which records it; returns how many passkeys and apps."""
    usable = list(person.passkeys.usable())
    for passkey in usable:
        passkeys.remove(passkey)
    had_app = one_time_codes.remove(person)
    recovery_codes.remove(person)
    return len(usable) + had_app
