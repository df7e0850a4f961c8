"""Delegations: made and ended by the people themselves, each with its entry."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest
from django.utils import timezone

from accounts.models import User
from approvals.models import Delegation
from audit.services import record
from core.english import gettext as _
from core.errors import CountersignError
from policies.thresholds import DECIDE


class DelegationRefused(CountersignError):
    """The delegation is not made, or not ended; says why."""


class DelegatedVote(NamedTuple):
    """A delegation that holds for a call: its two people, by id."""

    delegator: int
    delegate: int
    asks_both: bool


@transaction.atomic
def make(delegation: Delegation) -> None:
    """By its delegator. Raises DelegationRefused."""
    # Two made at once would not see each other.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('approvals_delegation'))")
    if why := why_not(delegation):
        raise DelegationRefused(why)
    delegation.save(force_insert=True)
    _record("delegation.made", delegation, delegation.delegator, told=delegation.delegate)


def why_not(delegation: Delegation) -> str:
    """Why it cannot be made, as a sentence; empty if it can."""
    delegator, delegate = delegation.delegator, delegation.delegate
    for person in (delegator, delegate):
        if not person.has_perm(DECIDE):
            return _("“%(who)s” is not among those who decide.") % {"who": person.username}
    if delegator == delegate:
        return _("Choose another user.")
    overlapping = Delegation.objects.filter(
        begins_at__lt=delegation.ends_at, ends_at__gt=delegation.begins_at
    )
    if overlapping.filter(delegate=delegator).exists():
        return _("You vote for another user at that time: a delegation cannot be passed on.")
    if overlapping.filter(delegator=delegate).exists():
        said = _("“%(who)s” has a delegate at that time: a delegation is not passed on.")
        return said % {"who": delegate.username}
    if overlapping.filter(_same_calls(delegation), delegator=delegator).exists():
        return _("You have a delegate for these calls at that time already.")
    return ""


def _same_calls(delegation: Delegation) -> Q:
    group, server = Q(group=None), Q(server=None)
    return (Q() if delegation.group is None else group | Q(group=delegation.group)) & (
        Q() if delegation.server is None else server | Q(server=delegation.server)
    )


@transaction.atomic
def end(delegation: Delegation, *, by: User) -> None:
    """By either of the two. Votes that were given stay. Raises DelegationRefused."""
    if by.pk not in (delegation.delegator_id, delegation.delegate_id):
        raise DelegationRefused(_("Only the two people concerned end a delegation."))
    now = timezone.now()
    running = Delegation.objects.filter(pk=delegation.pk, ends_at__gt=now)
    if running.update(ends_at=Greatest(F("begins_at"), now)):
        is_delegators = by.pk == delegation.delegator_id
        told = delegation.delegate if is_delegators else delegation.delegator
        _record("delegation.ended", delegation, by, told=told)


def of_call(call_id: UUID) -> list[DelegatedVote]:
    """The delegations that hold for a pending call now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT delegator_id, delegate_id, asks_both FROM approvals_delegations(%s)", [call_id]
        )
        return [DelegatedVote(*row) for row in cursor.fetchall()]


def ask_delegates(
    chosen: Collection[int], able: Collection[int], held: Iterable[DelegatedVote]
) -> set[int]:
    """These people, with delegates instead of (or beside) their delegators; `able`: whose vote
    would count, and who can be notified."""
    asked = set(chosen)
    for one in held:
        if one.delegator in chosen and one.delegate in able:
            asked.add(one.delegate)
            if not one.asks_both:
                asked.discard(one.delegator)
    return asked


def names_for(held: Iterable[tuple[int, int]], names: Mapping[int, str]) -> dict[int, list[str]]:
    """By delegate: the names of those in whose place they vote."""
    found: dict[int, list[str]] = {}
    for delegator, delegate in held:
        if delegator in names:
            found.setdefault(delegate, []).append(names[delegator])
    return found


def _record(action: str, delegation: Delegation, by: User, *, told: User) -> None:
    """`told`: the one of the two who has to be told of it."""
    record(
        action,
        actor=by.actor,
        delegation=delegation.pk,
        told_id=told.pk,
        delegator=delegation.delegator.username,
        delegate=delegation.delegate.username,
        group=delegation.group.name if delegation.group else "",
        server=delegation.server.slug if delegation.server else "",
        begins_at=delegation.begins_at.isoformat(),
        ends_at=delegation.ends_at.isoformat(),
    )
