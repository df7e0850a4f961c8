"""Readers: people who may act on the event, among those who want mail or a push of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from uuid import UUID

from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.models import User
from approvals import delegations
from approvals.eligibility import EligibilityFacts, facts, hindrance
from approvals.freezes import BEGIN, END
from approvals.models import Approval, Vote
from audit.models import Entry
from notifications.events import ANSWERS, DELEGATIONS, PERSONAL, Event
from notifications.models import Delivery, MailRecipient, PushDevice
from notifications.quiet_hours import waiting_people
from policies.thresholds import DECIDE

# What one has to be allowed, to do something of it.
PERMISSIONS = {
    Event.OUTCOME_UNKNOWN: {"calls.cancel_call"},
    Event.DEFINITION_REVIEW: {"registry.operate_server"},
    Event.SERVER_UNREACHABLE: {"registry.operate_server"},
    Event.SERVER_REACHABLE: {"registry.operate_server"},
    Event.BREAK_GLASS_USED: {DECIDE},
    Event.CALENDAR_FAILED: {"notifications.change_oncallschedule", "registry.operate_server"},
    Event.CALENDAR_RECOVERED: {"notifications.change_oncallschedule", "registry.operate_server"},
    Event.LIMIT_REACHED: {"policies.change_limit"},
    Event.AGENT_UNUSUAL: {"accounts.change_agent"},
    Event.VERIFICATION_FAILED: {"audit.view_entry"},
    Event.BACKUP_FAILED: {"registry.operate_server", "accounts.change_user"},
    Event.WORKLOAD: {DECIDE, "accounts.view_user"},
    Event.STOP_BEGAN: {BEGIN, END},
    Event.STOP_ENDED: {BEGIN, END},
    Event.ROLE_CHANGED: {"accounts.change_user"},
}
# By the kind of the token: who may issue another one.
TOKEN_PERMISSIONS = {
    "agent": "accounts.add_agenttoken",
    "service": "accounts.change_serviceaccount",
    "scim": "accounts.change_user",
}
# Its owner is told too.
OF_AGENTS = (Event.LIMIT_REACHED, Event.AGENT_UNUSUAL)
ASKED = (Event.APPROVAL_NEEDED, Event.APPROVAL_REMINDER)


Receiver = MailRecipient | PushDevice


class Audience:
    """Confirmed addresses and devices of people, read once for many entries."""

    def __init__(self) -> None:
        mail = MailRecipient.objects.reachable().select_related("person").order_by("person_id")
        devices = PushDevice.objects.reachable().select_related("person").order_by("pk")
        self._all: list[Receiver] = [*mail, *devices]

    def readers(self, entry: Entry, event: Event) -> list[Receiver]:
        people = self.people(event)
        chosen = {one.pk for one in _chosen(entry, event, people)} if people else set()
        return self.of(chosen, event)

    def people(self, event: Event) -> Collection[User]:
        """Everybody who wants mail or a push of it."""
        return {one.person_id: one.person for one in self._all if one.wants(event)}.values()

    def of(self, people: Collection[int], event: Event) -> list[Receiver]:
        """Where these people, by id, want to be told of it."""
        return [one for one in self._all if one.person_id in people and one.wants(event)]


def _chosen(entry: Entry, event: Event, people: Collection[User]) -> Iterator[User]:
    if event in PERSONAL:
        return (one for one in people if one.pk == account_of(entry))
    if event in ASKED:
        able = {one.pk: one for one in deciders(entry.call_id, people)}
        held = delegations.of_call(entry.call_id) if entry.call_id else []
        # A delegate who wants no messages now takes nobody's place.
        reachable = able.keys() - waiting_people(event, timezone.now())
        return (able[pk] for pk in delegations.ask_delegates(able, reachable, held))
    if event in ANSWERS:
        return _concerned(entry, people)
    return (one for one in people if may_act(one, event, entry))


def account_of(entry: Entry) -> int | None:
    """Whose account an event of PERSONAL is on: the one that the entry names, or whoever did it. Of
    a delegation: the one of the two who did not do it."""
    details = entry.details or {}
    if entry.action in DELEGATIONS:
        return details.get("told_id")
    return details.get("person_id") or _actor(entry)


def may_act(person: User, event: Event, entry: Entry) -> bool:
    if event == Event.TOKEN_EXPIRING:
        details = entry.details or {}
        is_own = details.get("person_id") == person.pk
        return is_own or person.has_perm(TOKEN_PERMISSIONS.get(details.get("kind", ""), ""))
    if event in OF_AGENTS and person.agents.filter(pk=entry.agent_id or 0).exists():
        return True
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
