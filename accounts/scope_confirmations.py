"""A user's own second factor behind what lets a service account change something.

A token outlives the session in which it was made: whoever sits at a session alone makes none that
changes anything, and adds no such permission to an account that has tokens.
"""

from __future__ import annotations

from collections.abc import Collection

from django.http import QueryDict

from accounts import stepup
from accounts.actors import AccountRefused
from accounts.models import Proof, ServiceAccount, User
from accounts.stepup import NotProven, Ticket
from core.english import gettext as _

MISSING = _("Confirm with a passkey or a code of your own.")


def statement(
    account: ServiceAccount, scopes: Collection[str], by: User, act: str, ticket: Ticket
) -> str:
    """The statement that `by` confirms; `scopes`: what the account may afterwards."""
    return f"{_head(account, scopes, by)}act: {act}\n{ticket.lines}"


def prove(
    account: ServiceAccount, scopes: Collection[str], by: User, act: str, given: QueryDict
) -> Proof:
    """The passkey's answer, or the code, of the form. Raises NotProven and TooManyAttempts."""
    if answer := given.get("answer", ""):
        ticket = given.get("ticket", "")
        said = statement(account, scopes, by, act, stepup.read_ticket(ticket))
        return stepup.prove(by, said, ticket=ticket, answer=answer)
    if code := given.get("code", "").strip():
        said = statement(account, scopes, by, act, Ticket.new())
        return stepup.prove_by_code(by, said, code=code)
    raise NotProven(str(MISSING))


def check(account: ServiceAccount, scopes: Collection[str], by: User, proof: Proof | None) -> None:
    """Raises AccountRefused where `proof` is not of these permissions."""
    if proof is None or proof.person_id != by.pk:
        raise AccountRefused(str(MISSING))
    if not proof.statement.startswith(_head(account, scopes, by)):
        raise AccountRefused(_("The permissions were changed meanwhile. Look at them again."))


def _head(account: ServiceAccount, scopes: Collection[str], by: User) -> str:
    names = f"account: {account.name}\npermissions: {' '.join(sorted(scopes))}\n"
    return f"Countersign: let a service account change things\n{names}by: {by.username}\n"
