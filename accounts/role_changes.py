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

from accounts.actors import COMMAND_LINE, AccountRefused, By, account_of, acting
from accounts.independence import Inviters, are_independent, unconfirmed_inviters
from accounts.models import CustomRole, RoleChange, SignInLink, User
from accounts.roles import Role
from audit.services import Actor, record
from core.english import gettext as _

# So long a change is shown to those who decide.
SHOWN = timedelta(days=7)
# Whose groups decide, and whose say who does.
DECIDING_PERMISSIONS = (
    "decide_approval",
    "break_glass",
    *("add_user", "change_user", "add_group", "change_group"),
    *("add_rule", "change_rule", "delete_rule"),
)


def deciding_groups(groups: Iterable[Group]) -> list[Group]:
    """The roles among these that take two administrators: Approver and Administrator."""
    ids = [group.pk for group in groups]
    found = Group.objects.filter(pk__in=ids, permissions__codename__in=DECIDING_PERMISSIONS)
    return list(found.distinct().order_by("name"))


def administrators() -> list[User]:
    return list(User.objects.filter(groups__name=Role.ADMINISTRATOR, is_active=True))


def needs_second(by: User | None) -> bool:
    """Is there another administrator to confirm, or was there until a user removed them?"""
    if by is None or not settings.TWO_ADMINISTRATORS:
        return False
    known = unconfirmed_inviters()
    if any(are_independent(one, by, known) for one in administrators()):
        return True
    removed = RoleChange.objects.filter(
        state=RoleChange.State.TAKEN,
        # Neither by the host nor by a provider, which tells that somebody left.
        asked_by__isnull=False,
        role=Role.ADMINISTRATOR,
        decided_at__gt=timezone.now() - SHOWN,
    )
    return removed.exclude(person=by).exists()


@transaction.atomic
def give(person: User, groups: Collection[Group], *, by: User | None) -> list[Group]:
    """Puts the person into these groups, or asks for a second administrator's word where one is
    needed: returns those that wait for it."""
    refuse_beyond_own(groups, by)
    heavy = deciding_groups(groups)
    waiting = heavy if needs_second(by) else []
    person.groups.add(*(group for group in groups if group not in waiting))
    for group in heavy:
        if group in waiting:
            _request(person, group, by)
        else:
            note_granted(person, group.name, by=by)
    return waiting


def refuse_beyond_own(groups: Iterable[Group], by: User | None) -> None:
    """Administrators give every role. Anybody else gives what they have: raises AccountRefused."""
    if by is None or by.is_superuser or Role.ADMINISTRATOR in by.group_names:
        return
    for group in groups:
        held = group.permissions.values_list("content_type__app_label", "codename")
        if not all(by.has_perm(f"{app}.{codename}") for app, codename in held) or (
            CustomRole.objects.filter(group=group).exclude(scoped_permissions=[]).exists()
        ):
            raise AccountRefused(_("You may not give the role “%s”.") % group.name)


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
            _note(person, group.name, state, provider)
            names = {"person": person.username, "person_id": person.pk, "role": group.name}
            record(f"role.{state}", actor=provider, **names)


def refuse_beyond(person: User, by: User | None) -> None:
    """Lets administrators alone change an account that may do more. Raises AccountRefused."""
    if by is None or by.is_superuser:
        return
    said = _("“%s” may do more than you: an administrator has to do it.") % person.username
    if person.is_superuser:
        raise AccountRefused(said)
    if Role.ADMINISTRATOR in by.group_names:
        return
    try:
        refuse_beyond_own(person.groups.all(), by)
    except AccountRefused as error:
        raise AccountRefused(said) from error
    if not all(by.has_perm(name) for name in person.own_permissions):
        raise AccountRefused(said)


def refuse_link(person: User, by: User) -> None:
    """A link lets its maker act as the person. Where a role of theirs took two administrators, that
    is for their inviter, whom both know to be behind the account. Raises AccountRefused."""
    if person.invited_by_id == by.pk or not needs_second(by):
        return
    asked = _requests().filter(person=person).exists()
    if asked or deciding_groups(person.groups.all()):
        raise AccountRefused(
            _(
                "“%s” has, or is to get, a role that takes two administrators: the person who "
                "invited them creates the link, or the role is removed and given again."
            )
            % person.username
        )


def take(person: User, groups: Collection[Group], *, by: User | None) -> None:
    """Raises AccountRefused where `by` may not give these groups either."""
    refuse_beyond_own(groups, by)
    person.groups.remove(*groups)
    for group in deciding_groups(groups):
        note_removed(person, group.name, by=by)


def note_granted(person: User, role: str, *, by: By) -> None:
    """Given at once, or in effect again because the person may sign in again."""
    _note(person, role, RoleChange.State.GIVEN, by)
    _record("role.given", person, role, by)


def note_removed(person: User, role: str, *, by: By) -> None:
    """Taken away, or without effect because the person was disabled."""
    _note(person, role, RoleChange.State.TAKEN, by)
    _record("role.taken", person, role, by)


def note_of_host(person: User, state: RoleChange.State) -> None:
    """Notes a change of a deciding account from the host's command line; cards show it like a new
    role."""
    for group in deciding_groups(person.groups.all()):
        _note(person, group.name, state, None)


def note_factors_reset(person: User, *, by: User) -> None:
    """Notes that somebody else removed their second factors; cards show it like a new role."""
    for group in deciding_groups(person.groups.all()):
        _note(person, group.name, RoleChange.State.RESET, by)


def why_not_confirm(
    change: RoleChange, by: User | None, known: Inviters, linked: Collection[int]
) -> str:
    """Why `by` may not confirm the request, as a sentence; empty if they may. Nobody: the host.
    `linked`: the users, by id, to whom `by` holds a link."""
    if why := _why_not_asked(change):
        return why
    if by is None:
        return ""
    if by.pk in (change.asked_by_id, change.person_id):
        return _("Another administrator than who asked, and than who gets it, has to confirm.")
    if change.asked_by and not are_independent(by, change.asked_by, known):
        return _("One of you let the other in, and nobody else has confirmed that account.")
    if not are_independent(by, change.person, known) or change.person_id in linked:
        return _("You invited “%s”: another user must confirm it.") % change.person.username
    return _why_not_given(change, by)


def _why_not_asked(change: RoleChange) -> str:
    """Why its asker could not ask for it any more, as a sentence; empty if they could."""
    asker = change.asked_by
    if asker is None:
        return ""
    if not asker.is_active or not asker.has_perm("accounts.change_user"):
        return _("Who asked for it may not ask any more.")
    return _why_not_given(change, asker)


def _why_not_given(change: RoleChange, by: User) -> str:
    """Why `by` may not give the role, as a sentence; empty if they may."""
    try:
        refuse_beyond_own(Group.objects.filter(name=change.role), by)
    except AccountRefused as error:
        return str(error)
    return ""


def linked_by(by: User | None) -> set[int]:
    """The users, by id, to whom `by` holds a link that still signs in."""
    links = SignInLink.objects.filter(made_by=by, used_at=None, expires_at__gt=timezone.now())
    return set(links.values_list("person_id", flat=True))


@transaction.atomic
def confirm(change: RoleChange, *, by: User | None) -> None:
    """Raises AccountRefused."""
    # Held, so that nobody makes a link of theirs between the checks and the role.
    person = User.objects.select_for_update(of=("self",)).get(pk=change.person_id)
    if why := why_not_confirm(change, by, unconfirmed_inviters(), linked_by(by)):
        raise AccountRefused(why)
    _decide(change, RoleChange.State.GIVEN, by)
    person.groups.add(Group.objects.get(name=change.role))
    _record("role.given", person, change.role, by, asked_by=_name(change.asked_by))


@transaction.atomic
def refuse(change: RoleChange, *, by: User) -> None:
    """Also by who asked. Raises AccountRefused."""
    _decide(change, RoleChange.State.REFUSED, by)
    _record("role.refused", change.person, change.role, by, asked_by=_name(change.asked_by))


def requested() -> list[RoleChange]:
    found = list(_requests().select_related("person", "asked_by").order_by("asked_at"))
    # What one asker may do is asked once.
    askers = {one.asked_by_id: one.asked_by for one in found}
    for one in found:
        one.asked_by = askers[one.asked_by_id]
    return found


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


def _note(person: User, role: str, state: RoleChange.State, by: By) -> None:
    now = timezone.now()
    RoleChange.objects.create(
        person=person,
        role=role,
        asked_by=account_of(by),
        asked_at=now,
        state=state,
        decided_at=now,
        source=by.name if isinstance(by, Actor) else "",
    )


def _decide(change: RoleChange, state: RoleChange.State, by: User | None) -> None:
    # The update decides: of two who press at once, one is first.
    now: datetime = timezone.now()
    open_ = _requests().filter(pk=change.pk)
    if not open_.update(state=state, decided_by=by, decided_at=now):
        raise AccountRefused(_("Another administrator answered this request first."))


def _name(person: User | None) -> str:
    return person.username if person else COMMAND_LINE.name


def _record(action: str, person: User, role: str, by: By, **more: str) -> None:
    record(action, actor=acting(by), person=person.username, person_id=person.pk, role=role, **more)
