"""Readers: people who may act on the event, among those who want mail or a push of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.backend import keep_rights, with_rights
from accounts.models import User
from accounts.scopes import ScopeTarget, permits
from approvals import delegations
from approvals.eligibility import EligibilityFacts, facts, hindrance
from approvals.freezes import BEGIN, END
from approvals.models import Approval, Vote
from audit.models import Entry
from calls.scope_targets import agent_target, call_target, server_target
from notifications.events import ANSWERS, DELEGATIONS, PERSONAL, Event
from notifications.models import Delivery, MailRecipient, PushDevice
from notifications.quiet_hours import waiting_people
from policies.thresholds import DECIDE

# What one has to be allowed, to do something of it.
PERMISSIONS = {
    # Of calls that others decided: who could have.
    **{event: {DECIDE} for event in ANSWERS},
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
    "agent": "accounts.change_agenttoken",
    "service": "accounts.change_serviceaccount",
    "scim": "accounts.change_user",
}
OF_SERVERS = (Event.DEFINITION_REVIEW, Event.SERVER_UNREACHABLE, Event.SERVER_REACHABLE)
# Its owner is told too.
OF_AGENTS = (Event.LIMIT_REACHED, Event.AGENT_UNUSUAL)
ASKED = (Event.APPROVAL_NEEDED, Event.APPROVAL_REMINDER)


Receiver = MailRecipient | PushDevice


class Audience:
    """Confirmed addresses and devices of people, read once for many entries."""

    def __init__(self) -> None:
        mail = MailRecipient.objects.reachable().order_by("person_id")
        devices = PushDevice.objects.reachable().order_by("pk")
        found: list[Receiver] = [*mail, *devices]
        people = _with_rights({one.person_id for one in found})
        self._all = [one for one in found if one.person_id in people]
        for one in self._all:
            one.person = people[one.person_id]

    @cached_property
    def asked_at(self) -> dict[int, float]:
        """When each person was last notified of any pending call, in seconds; by id. Each is looked
        up by itself: the rows of a month are many."""
        people = User.objects.filter(pk__in={one.person_id for one in self._all})
        devices = PushDevice.objects.filter(person__in=people)
        rows = [
            *people.values_list("pk", _last_asked("person")),
            *devices.values_list("person_id", _last_asked("device")),
        ]
        found: dict[int, float] = {}
        for pk, at in rows:
            found[pk] = max(found.get(pk, 0.0), at.timestamp() if at else 0.0)
        return found

    def ask(self, people: Collection[int], now: datetime) -> list[Receiver]:
        """Where these people are notified of a pending call, which is remembered."""
        receivers = self.of(people, Event.APPROVAL_NEEDED)
        if "asked_at" in vars(self):
            self.asked_at.update({one.person_id: now.timestamp() for one in receivers})
        return receivers

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


def _with_rights(people: Collection[int]) -> dict[int, User]:
    """In one query, however many they are."""
    return {row.pk: keep_rights(row) for row in with_rights().filter(pk__in=people)}


def _last_asked(reader: str) -> Subquery:
    asked = Delivery.objects.filter(event=Event.APPROVAL_NEEDED, **{reader: OuterRef("pk")})
    return Subquery(asked.order_by("-created_at").values("created_at")[:1])


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
        needed = {TOKEN_PERMISSIONS.get(details.get("kind", ""), "")}
        return is_own or _may(person, needed, event, entry)
    if event in OF_AGENTS and person.agents.filter(pk=entry.agent_id or 0).exists():
        return True
    if event in ANSWERS and entry.person_id == person.pk:
        return True
    return _may(person, PERMISSIONS.get(event, set()), event, entry)


def _may(person: User, needed: set[str], event: Event, entry: Entry) -> bool:
    """Everywhere, or by a role that is limited to tags and covers the object of the event."""
    if any(person.has_perm(name) for name in needed):
        return True
    target = _target(event, entry) if person.scoped_roles else None
    return target is not None and any(permits(person.scoped_roles, one, target) for one in needed)


def _target(event: Event, entry: Entry) -> ScopeTarget | None:
    if event in OF_SERVERS:
        return server_target(entry.server)
    if event == Event.OUTCOME_UNKNOWN or event in ANSWERS:
        return call_target(entry.call_id)
    is_of_agent = event in OF_AGENTS or (event == Event.TOKEN_EXPIRING and entry.agent)
    return agent_target(entry.agent) if is_of_agent else None


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
