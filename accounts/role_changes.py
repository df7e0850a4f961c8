"""Grants of deciding roles: two administrators where there are two
(COUNTERSIGN_TWO_ADMINISTRATORS), and a note on every card for a week."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.actors import COMMAND_LINE, AccountRefused, acting
from accounts.independence import Inviters, are_independent, unconfirmed_inviters
from accounts.models import RoleChange, User
from accounts.roles import Role
from audit.services import Actor, record
from core.english import gettext as _

# So long a change is shown to those who decide.
SHOWN = timedelta(days=7)
# Whose groups decide, and whose say who does.
DECIDING_PERMISSIONS = ("decide_approval", "change_user")


def deciding_groups(groups: Iterable[Group]) -> list[Group]:
    """The roles among these that take two administrators: Approver and Administrator."""
    ids = [group.pk for group in groups]
    found = Group.objects.filter(pk__in=ids, permissions__codename__in=DECIDING_PERMISSIONS)
    return list(found.distinct().order_by("name"))


def administrators() -> list[User]:
    return list(User.objects.filter(groups__name=Role.ADMINISTRATOR, is_active=True))


def needs_second(by: User | None) -> bool:
    """Is there another administrator to confirm, or was there until `by` removed them?"""
    if by is None or not settings.TWO_ADMINISTRATORS:
        return False
    known = unconfirmed_inviters()
    if any(are_independent(one, by, known) for one in administrators()):
        return True
    removed = RoleChange.objects.filter(
        state=RoleChange.State.TAKEN,
        asked_by=by,
        role=Role.ADMINISTRATOR,
        decided_at__gt=timezone.now() - SHOWN,
    )
    return removed.exclude(person=by).exists()


@transaction.atomic
def give(person: User, groups: Collection[Group], *, by: User | None) -> list[Group]:
    """Puts the person into these groups, or asks for a second administrator's word where one is
    needed: returns those that wait for it."""
    heavy = deciding_groups(groups)
    waiting = heavy if needs_second(by) else []
    person.groups.add(*(group for group in groups if group not in waiting))
    for group in heavy:
        if group in waiting:
            _request(person, group, by)
        else:
            note_granted(person, group.name, by=by)
    return waiting


@transaction.atomic
def follow_provider(
    person: User, *, gained: Collection[Group], lost: Collection[Group], provider: Actor
) -> None:
    """The groups that an identity provider gave and took: no second administrator is asked, and
    those who decide see it like any other change."""
    person.groups.add(*gained)
    person.groups.remove(*lost)
    states = [(RoleChange.State.GIVEN, gained), (RoleChange.State.TAKEN, lost)]
    for state, groups in states:
        for group in deciding_groups(groups):
            _note(person, group.name, state, None, source=provider.name)
            names = {"person": person.username, "person_id": person.pk, "role": group.name}
            record(f"role.{state}", actor=provider, **names)


def take(person: User, groups: Collection[Group], *, by: User | None) -> None:
    person.groups.remove(*groups)
    for group in deciding_groups(groups):
        note_removed(person, group.name, by=by)


def note_granted(person: User, role: str, *, by: User | None) -> None:
    """Given at once, or in effect again because the person may sign in again."""
    _note(person, role, RoleChange.State.GIVEN, by)
    _record("role.given", person, role, by)


def note_removed(person: User, role: str, *, by: User | None) -> None:
    """Taken away, or without effect because the person was disabled."""
    _note(person, role, RoleChange.State.TAKEN, by)
    _record("role.taken", person, role, by)


def note_of_host(person: User, state: RoleChange.State) -> None:
    """Notes a change of a deciding account from the host's command line; cards show it like a new
    role."""
    for group in deciding_groups(person.groups.all()):
        _note(person, group.name, state, None)


def why_not_confirm(change: RoleChange, by: User | None, known: Inviters) -> str:
    """Why `by` may not confirm the request, as a sentence; empty if they may. Nobody: the host."""
    if by is None:
        return ""
    if by.pk in (change.asked_by_id, change.person_id):
        return _("Another administrator than who asked, and than who gets it, has to confirm.")
    if change.asked_by and not are_independent(by, change.asked_by, known):
        return _("One of you let the other in, and nobody else has confirmed that account.")
    return ""


@transaction.atomic
def confirm(change: RoleChange, *, by: User | None) -> None:
    """Raises AccountRefused."""
    if why := why_not_confirm(change, by, unconfirmed_inviters()):
        raise AccountRefused(why)
    _decide(change, RoleChange.State.GIVEN, by)
    person = User.objects.select_for_update(of=("self",)).get(pk=change.person_id)
    person.groups.add(Group.objects.get(name=change.role))
    _record("role.given", person, change.role, by, asked_by=_name(change.asked_by))


@transaction.atomic
def refuse(change: RoleChange, *, by: User) -> None:
    """Also by who asked. Raises AccountRefused."""
    _decide(change, RoleChange.State.REFUSED, by)
    _record("role.refused", change.person, change.role, by, asked_by=_name(change.asked_by))


def requested() -> list[RoleChange]:
    return list(_requests().select_related("person", "asked_by").order_by("asked_at"))


def recent() -> list[RoleChange]:
    """Recent role changes, for those who decide; the newest first."""
    undone = (RoleChange.State.REQUESTED, RoleChange.State.REFUSED)
    found = RoleChange.objects.filter(decided_at__gt=timezone.now() - SHOWN)
    found = found.exclude(state__in=undone)
    return list(found.select_related("person", "asked_by", "decided_by").order_by("-decided_at"))


def _requests() -> QuerySet[RoleChange]:
    return RoleChange.objects.filter(state=RoleChange.State.REQUESTED)


def _request(person: User, group: Group, by: User | None) -> None:
    _change, created = RoleChange.objects.get_or_create(
        person=person,
        role=group.name,
        state=RoleChange.State.REQUESTED,
        defaults={"asked_by": by},
    )
    if created:
        _record("role.requested", person, group.name, by)


def _note(
    person: User, role: str, state: RoleChange.State, by: User | None, *, source: str = ""
) -> None:
    now = timezone.now()
    RoleChange.objects.create(
        person=person,
        role=role,
        asked_by=by,
        asked_at=now,
        state=state,
        decided_at=now,
        source=source,
    )


def _decide(change: RoleChange, state: RoleChange.State, by: User | None) -> None:
    # The update decides: of two who press at once, one is first.
    now: datetime = timezone.now()
    open_ = _requests().filter(pk=change.pk)
    if not open_.update(state=state, decided_by=by, decided_at=now):
        raise AccountRefused(_("Somebody else answered this request first."))


def _name(person: User | None) -> str:
    return person.username if person else COMMAND_LINE.name


def _record(action: str, person: User, role: str, by: User | None, **more: str) -> None:
    record(action, actor=acting(by), person=person.username, person_id=person.pk, role=role, **more)
