"""Readers: people who may act on the event, among those who want mail or a push of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from uuid import UUID

from django.db.models.functions import Coalesce

from accounts.models import User
from approvals.eligibility import EligibilityFacts, facts, hindrance
from approvals.freezes import BEGIN, END
from approvals.models import Approval, Vote
from audit.models import Entry
from notifications.events import PERSONAL, Event
from notifications.models import Delivery, MailRecipient, PushDevice

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
    """Confirmed addresses and devices of people, read once for many entries."""

    def __init__(self) -> None:
        mail = MailRecipient.objects.reachable().select_related("person").order_by("person_id")
        devices = PushDevice.objects.reachable().select_related("person").order_by("pk")
        self._all: list[MailRecipient | PushDevice] = [*mail, *devices]

    def readers(self, entry: Entry, event: Event) -> Iterator[MailRecipient | PushDevice]:
        wanting = [one for one in self._all if one.wants(event)]
        people = {one.person_id: one.person for one in wanting}
        chosen = {one.pk for one in _chosen(entry, event, people.values())} if people else ()
        yield from (one for one in wanting if one.person_id in chosen)


def _chosen(entry: Entry, event: Event, people: Collection[User]) -> Iterator[User]:
    if event in PERSONAL:
        return (one for one in people if one.pk == account_of(entry))
    if event in ASKED:
        return deciders(entry.call_id, people)
    if event in ANSWERED:
        return _concerned(entry, people)
    return (one for one in people if may_act(one, event))


def account_of(entry: Entry) -> int | None:
    """Whose account an event of PERSONAL is on: of whoever did it, or named by somebody unknown."""
    return _actor(entry) or (entry.details or {}).get("person_id")


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
    asked = Delivery.objects.filter(call_id=entry.call_id, webhook__isnull=True)
    reader = Coalesce("person_id", "device__person_id")
    ids = {*asked.values_list(reader, flat=True), entry.person_id}
    return (one for one in people if one.pk in ids and one.pk != _actor(entry))


def _actor(entry: Entry) -> int | None:
    return entry.actor_id if entry.actor_kind == Entry.ActorKind.PERSON else None
