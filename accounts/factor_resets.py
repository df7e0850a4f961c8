"""Removing the second factors of somebody who lost them: one administrator asks, another confirms.

Where there is no other one, whoever runs the host does it (manage.py reset_factors). The password
stays, and a role that requires a second factor leads to setting up a new one.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone

from accounts import role_changes, second_factor, sessions, stepup
from accounts.actors import AccountRefused
from accounts.independence import are_independent, unconfirmed_inviters
from accounts.models import BrowserSession, CodeApp, FactorReset, Passkey, Proof, User
from accounts.stepup import NotProven, Ticket
from audit.services import record
from core.english import gettext as _


def why_not(person: User, by: User) -> str:
    """Why `by` may not ask for it, as a sentence; empty if they may."""
    if person == by:
        return _("Nobody removes their own second factors here: another administrator does.")
    if not person.has_second_factor:
        return _("“%s” has no second factor.") % person.username
    if why := _why_beyond(person, by):
        return why
    if not any(_is_second(one, person, by) for one in role_changes.administrators()):
        said = _("No second administrator could confirm it. Whoever runs the host does it: %s")
        return said % f"manage.py reset_factors {person.username}"
    return ""


def why_not_confirm(reset: FactorReset, by: User) -> str:
    """Why `by` may not confirm it, as a sentence; empty if they may."""
    if by.pk in (reset.asked_by_id, reset.person_id):
        return _("Another administrator than who asked, and than whose factors they are, confirms.")
    if not are_independent(by, reset.asked_by, unconfirmed_inviters()):
        return _("One of you let the other in, and nobody else has confirmed that account.")
    if not reset.asked_by.is_active or not reset.asked_by.has_perm("accounts.change_user"):
        return _("Who asked for it may not ask any more.")
    if _has_newer_factor(reset):
        said = _("“%s” has set up a second factor since. Deny this request, then create a new one.")
        return said % reset.person.username
    return _why_beyond(reset.person, by) or _why_beyond(reset.person, reset.asked_by)


@transaction.atomic
def request(person: User, *, by: User, reason: str, proof: Proof) -> FactorReset:
    """`proof`: the administrator's own second factor, at this moment. Raises AccountRefused."""
    User.objects.select_for_update().get(pk=person.pk)
    if why := why_not(person, by):
        raise AccountRefused(why)
    if not reason:
        raise AccountRefused(_("Give a reason."))
    if pending(person):
        raise AccountRefused(_("It has already been requested."))
    reset = FactorReset.objects.create(person=person, reason=reason, asked_by=by)
    record("person.factors_reset_requested", **_facts(reset, by), proof=proof.statement_digest)
    return reset


@transaction.atomic
def confirm(reset: FactorReset, *, by: User, proof: Proof) -> None:
    """Ends the person's sessions. Raises AccountRefused."""
    # Held from before the checks, so that no factor is added between them and the removal.
    person = User.objects.select_for_update().get(pk=reset.person_id)
    if why := why_not_confirm(reset, by):
        raise AccountRefused(why)
    _decide(reset, FactorReset.State.DONE, by)
    count = second_factor.remove_factors(person)
    theirs = BrowserSession.objects.filter(person=person)
    sessions.end_by(by.actor, theirs, reason=_("The second factors were removed."))
    role_changes.note_factors_reset(person, by=by)
    record(
        "person.factors_reset",
        actor=by.actor,
        reason=reset.reason,
        person=person.username,
        person_id=person.pk,
        asked_by=reset.asked_by.username,
        removed=count,
        proof=proof.statement_digest,
    )


@transaction.atomic
def refuse(reset: FactorReset, *, by: User) -> None:
    """Also by who asked. Raises AccountRefused."""
    _decide(reset, FactorReset.State.REFUSED, by)
    record("person.factors_reset_denied", **_facts(reset, by))


def pending(person: User) -> FactorReset | None:
    return _requests().filter(person=person).select_related("asked_by", "person").first()


def requested() -> list[FactorReset]:
    return list(_requests().select_related("asked_by", "person").order_by("asked_at"))


def pending_as_shown(person: User, shown: str) -> FactorReset | None:
    """`shown`: id of the request that the page showed; empty if it showed none. Raises
    AccountRefused if it is another by now: whoever asks confirms nothing, nor something unseen."""
    asked = pending(person)
    if shown != (str(asked.pk) if asked else ""):
        raise AccountRefused(_("Another administrator was first. Check what is pending now."))
    return asked


def statement(person: User, by: User, ticket: Ticket, asked: FactorReset | None) -> str:
    """The statement that `by` confirms with a factor of their own; `asked`: what they confirm."""
    act = f"confirms: request {asked.pk}" if asked else "asks for it"
    names = f"by: {by.username}\nof: {person.username} ({person.pk})"
    return f"Countersign: remove second factors\n{act}\n{names}\n{ticket.lines}"


def prove(person: User, by: User, given: QueryDict, asked: FactorReset | None) -> Proof:
    """The passkey's answer, or the code, of the form. Raises NotProven and TooManyAttempts."""
    if answer := given.get("answer", ""):
        ticket = given.get("ticket", "")
        said = statement(person, by, stepup.read_ticket(ticket), asked)
        return stepup.prove(by, said, ticket=ticket, answer=answer)
    if code := given.get("code", "").strip():
        return stepup.prove_by_code(by, statement(person, by, Ticket.new(), asked), code=code)
    raise NotProven(_("Confirm with a passkey or a code of your own."))


def _requests() -> QuerySet[FactorReset]:
    return FactorReset.objects.filter(state=FactorReset.State.REQUESTED)


def _has_newer_factor(reset: FactorReset) -> bool:
    person, since = reset.person_id, reset.asked_at
    passkeys = Passkey.objects.usable().filter(person=person, created_at__gt=since)
    apps = CodeApp.objects.filter(person=person, confirmed_at__gt=since)
    return passkeys.exists() or apps.exists()


def _is_second(one: User, person: User, by: User) -> bool:
    known = unconfirmed_inviters()
    return one.pk not in (by.pk, person.pk) and are_independent(one, by, known)


def _why_beyond(person: User, by: User) -> str:
    """Why the account has more rights than `by`, as a sentence; empty if it has not."""
    try:
        role_changes.refuse_beyond(person, by)
    except AccountRefused as error:
        return str(error)
    return ""


def _decide(reset: FactorReset, state: FactorReset.State, by: User) -> None:
    # The update decides: of two who press at once, one is first.
    open_ = _requests().filter(pk=reset.pk)
    if not open_.update(state=state, decided_by=by, decided_at=timezone.now()):
        raise AccountRefused(_("Another administrator answered this request first."))


def _facts(reset: FactorReset, by: User) -> dict[str, Any]:
    names = {"person": reset.person.username, "person_id": reset.person_id}
    return {"actor": by.actor, "reason": reset.reason, **names}
