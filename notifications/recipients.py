"""Readers of a mail: people who may act on the event, among those who want mail of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from uuid import UUID

from accounts.models import User
from approvals.eligibility import EligibilityFacts, facts, hindrance
from approvals.freezes import BEGIN, END
from approvals.models import Approval, Vote
from audit.models import Entry
from notifications.events import Event
from notifications.models import Delivery, MailRecipient

# What one has to be allowed, to do something of it.
PERMISSIONS = {
    Event.OUTCOME_UNKNOWN: {"calls.cancel_call"},
    Event.DEFINITION_REVIEW: {"registry.operate_server"},
    Event.SERVER_UNREACHABLE: {"registry.operate_server"},
    Event.SERVER_REACHABLE: {"registry.operate_server"},
    Event.STOP_BEGAN: {BEGIN, END},
    Event.STOP_ENDED: {BEGIN, END},
    Event.ROLE_CHANGED: {"accounts.change_user"},
}
ASKED = (Event.APPROVAL_NEEDED, Event.APPROVAL_REMINDER)
ANSWERED = (Event.APPROVAL_DECIDED, Event.APPROVAL_EXPIRED)


class Audience:
    """People with a confirmed address, read once for many entries."""

    def __init__(self) -> None:
        recipients = MailRecipient.objects.reachable().select_related("person")
        self._recipients = list(recipients.order_by("person_id"))

    def people(self, entry: Entry, event: Event) -> Iterator[User]:
        wanting = [one.person for one in self._recipients if event in one.events]
        if not wanting:
            return
        if event in ASKED:
            yield from deciders(entry.call_id, wanting)
        elif event in ANSWERED:
            yield from _concerned(entry, wanting)
        else:
            yield from (one for one in wanting if may_act(one, event))


def may_act(person: User, event: Event) -> bool:
    return any(person.has_perm(name) for name in PERMISSIONS.get(event, ()))


def deciders(call_id: UUID | None, people: Collection[User]) -> Iterator[User]:
    """Those of them whose vote would count now, by what the card itself asks."""
    approval = Approval.objects.waiting().select_related("call").filter(pk=call_id).first()
    if approval is None:
        return
    known = facts([approval.pk]).get(approval.pk, EligibilityFacts("", {}, []))
    votes = {vote.person_id: vote for vote in Vote.objects.standing().filter(approval=approval)}
    for person in people:
        own = votes.get(person.pk)
        if not hindrance(approval, person, known.excluded, own, person.group_names):
            yield person


def _concerned(entry: Entry, people: Collection[User]) -> Iterator[User]:
    """People who were asked, and the agent's owner; not who decided it just now."""
    asked = Delivery.objects.filter(call_id=entry.call_id, person__isnull=False)
    ids = {*asked.values_list("person_id", flat=True), entry.person_id}
    return (one for one in people if one.pk in ids and one.pk != _decider(entry))


def _decider(entry: Entry) -> int | None:
    return entry.actor_id if entry.actor_kind == Entry.ActorKind.PERSON else None
