"""The first password of a user who signs in at an identity provider. It outlives the session, which
may be stolen: so its user confirms it by a code, or by signing in at the provider anew."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from accounts import stepup
from accounts.models import Proof, User
from accounts.oidc import step_up
from accounts.stepup import NotProven, Ticket
from core.english import gettext as _


@dataclass(frozen=True, slots=True)
class FirstPasswordOptions:
    """The user's means to confirm it."""

    codes: bool
    # The provider's name; empty where this session's user cannot confirm there.
    provider: str
    # They did, and have to set the password.
    is_confirmed: bool

    @property
    def is_possible(self) -> bool:
        return self.codes or self.is_confirmed


def options(request: HttpRequest, person: User) -> FirstPasswordOptions | None:
    """None where nothing has to be confirmed: there is a password, which is asked for, or no other
    way in yet."""
    if person.has_usable_password() or not person.has_identity:
        return None
    here = step_up.place(request.session, person)
    kept = step_up.confirmation(request.session) if here else None
    is_this = bool(here and kept and kept.statement == here.whole(_statement(person, kept.ticket)))
    return FirstPasswordOptions(person.proof_means[1], here.provider.label if here else "", is_this)


def begin(request: HttpRequest, person: User, *, next_page: str) -> str:
    """The URL at the provider where it is confirmed. Raises NotProven and ProviderFailed."""
    return step_up.begin(request, person, _statement(person, Ticket.new()), next_page=next_page)


def prove(request: HttpRequest, person: User) -> Proof | None:
    """None where nothing has to be confirmed. Raises NotProven and TooManyAttempts."""
    if options(request, person) is None:
        return None
    if code := request.POST.get("code", "").strip():
        return stepup.prove_by_code(person, _statement(person, Ticket.new()), code=code)
    if kept := step_up.confirmation(request.session):
        return step_up.prove(request, person, _statement(person, kept.ticket))
    raise NotProven(_("Confirm first that it is you: a session may be stolen."))


def _statement(person: User, ticket: Ticket) -> str:
    whose = f"person: {person.username} ({person.pk})"
    return f"Countersign: set a first password\n{whose}\n{ticket.lines}"
