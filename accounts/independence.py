"""Which accounts one person may hold: those that they let in, until somebody else confirms them.

Whoever invites somebody holds the link that signs them in, and may use it alone. For a while
(COUNTERSIGN_INVITE_DAYS) the new account therefore counts as its inviter's wherever two people are
needed. The database asks the same where it counts votes (approvals_parties, approvals_dependents).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db import transaction
from django.utils import timezone

from accounts.actors import AccountRefused, acting
from accounts.models import User
from accounts.roles import Role
from audit.services import record
from core.english import gettext as _

# By id: of each account that nobody else has confirmed, who let it in.
Inviters = dict[int, set[int]]


def unconfirmed_inviters(*, however_old: bool = False) -> Inviters:
    """Inviters of the accounts that count as their inviter's; with `however_old`, of all
    unconfirmed accounts."""
    since = {} if however_old else {"unconfirmed_until__gt": timezone.now()}
    found = User.objects.filter(unconfirmed_until__isnull=False, **since)
    rows = found.values_list("pk", "invited_by_id", "let_in_by_id")
    return {pk: {one for one in by if one is not None} for pk, *by in rows}


def inviters_behind(people: Iterable[int], known: Inviters) -> set[int]:
    """The inviters of these accounts, direct and indirect, by account id."""
    found: set[int] = set()
    todo = list(people)
    while todo:
        new = known.get(todo.pop(), set()) - found
        found |= new
        todo.extend(new)
    return found


def holders(people: Collection[int], known: Inviters) -> set[int]:
    """These accounts with all who may still control them, by account id."""
    return {*people, *inviters_behind(people, known)}


def are_independent(one: User, other: User, known: Inviters) -> bool:
    """Can these two only be two people?"""
    return holders([one.pk], known).isdisjoint(holders([other.pk], known))


def why_not_confirm(person: User, by: User | None) -> str:
    """Why `by` may not confirm this account, as a sentence; empty if they may. Nobody: the host."""
    if person.unconfirmed_until is None:
        return _("“%s” needs no confirmation.") % person.username
    if not person.has_usable_password() and not person.has_identity:
        return _("“%s” has set no password yet: until then the link's maker may be behind it.") % (
            person.username
        )
    if by is not None and not (by.is_superuser or Role.ADMINISTRATOR in by.group_names):
        return _("An administrator has to confirm it.")
    if by is not None and not are_independent(person, by, unconfirmed_inviters(however_old=True)):
        return _(
            "The account “%s” must be confirmed by someone other than the person who invited it."
        ) % (person.username)
    return ""


@transaction.atomic
def confirm(person: User, *, by: User | None) -> None:
    """`by` says that another person than the inviter is behind it. Raises AccountRefused."""
    locked = User.objects.select_for_update().get(pk=person.pk)
    if why := why_not_confirm(locked, by):
        raise AccountRefused(why)
    now = timezone.now()
    User.objects.filter(pk=person.pk).update(
        unconfirmed_until=None, confirmed_by=by, confirmed_at=now
    )
    person.refresh_from_db(fields=["unconfirmed_until", "confirmed_by", "confirmed_at"])
    inviter = locked.invited_by.username if locked.invited_by else ""
    record("person.confirmed", actor=acting(by), person=person.username, invited_by=inviter)
