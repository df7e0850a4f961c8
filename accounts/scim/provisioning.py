"""Users and groups as a provider provisions them. Each change is an entry with its token as actor.

A user is tied to the person whom the provider made here, or whose account there is connected
already: a name or an address takes over nobody's account.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from accounts.models import Identity, ScimGroup, ScimUser, User
from accounts.oidc.group_mapping import set_mapped
from accounts.oidc.identities import create_person
from accounts.oidc.providers import IdentityProvider
from accounts.scim.roles import mapped_roles, roles_of
from audit.services import Actor, record
from core.english import gettext as _
from core.errors import CountersignError

# `approvals.disabling.set_active`, of a higher package (config/urls.py).
SetActive = Callable[..., bool]


class Conflict(CountersignError):
    """It would be a second one, or somebody else's."""


class UnknownMember(CountersignError):
    """A member that is no user of this provider."""


@dataclass(frozen=True, slots=True)
class Provisioner:
    """On whose behalf, and how a user is disabled and enabled."""

    provider: IdentityProvider
    actor: Actor
    set_active: SetActive


@dataclass(frozen=True, slots=True)
class UserFields:
    user_name: str
    external_id: str
    attributes: dict[str, Any]
    # None: not said.
    is_active: bool | None


@dataclass(frozen=True, slots=True)
class GroupFields:
    display_name: str
    external_id: str
    members: frozenset[UUID]


def create_user(by: Provisioner, given: UserFields) -> ScimUser:
    """Raises Conflict, NotAdmitted and AccountRefused."""
    user = _deleted(by, given)
    if user is None:
        person = _connected(by, given) or _new_person(by, given)
        user = ScimUser(issuer=by.provider.issuer, person=person)
    user.deleted_at = None
    user.is_active = given.is_active is not False
    _write(user, given)
    user.save()
    _record("scim_user.created", by, user)
    _follow(by, user)
    return user


def change_user(by: Provisioner, user: ScimUser, given: UserFields) -> None:
    """Raises AccountRefused. `user` is locked."""
    before = (user.user_name, user.external_id, user.attributes)
    _write(user, given)
    if before != (user.user_name, user.external_id, user.attributes):
        _record("scim_user.changed", by, user)
    user.version += 1
    user.changed_at = timezone.now()
    user.is_active = given.is_active
    user.save()
    _follow(by, user)


def delete_user(by: Provisioner, user: ScimUser) -> None:
    """Disables the person; the row stays, so that nobody else becomes them. Raises
    AccountRefused."""
    user.is_active = False
    _follow(by, user)
    groups = list(user.groups.all())
    user.groups.clear()
    _touch(groups)
    _sync_roles(by, [user], mapped_roles(by.provider, groups))
    user.deleted_at = timezone.now()
    user.save(update_fields=["deleted_at"])
    _record("scim_user.deleted", by, user)


def create_group(by: Provisioner, given: GroupFields) -> ScimGroup:
    """Raises Conflict and UnknownMember."""
    names = [name for name in (given.display_name, given.external_id) if name]
    group = ScimGroup(issuer=by.provider.issuer, first_names=names)
    if _is_held(by, names):
        raise Conflict(_("Another group has this name, to which roles are mapped here."))
    group.display_name, group.external_id = given.display_name, given.external_id
    group.save()
    added = _members(by, given.members)
    group.members.set(added)
    _record_group("scim_group.created", by, group, added=_names(added))
    _sync_roles(by, added, mapped_roles(by.provider, [group]))
    return group


def change_group(by: Provisioner, group: ScimGroup, given: GroupFields) -> None:
    """Raises UnknownMember. `group` is locked."""
    before = mapped_roles(by.provider, [group])
    had = {user.pk: user for user in group.members.select_related("person")}
    now = {user.pk: user for user in _members(by, given.members)}
    group.display_name, group.external_id = given.display_name, given.external_id
    kept = (group.display_name, group.external_id)
    group.first_names = [name for name in group.first_names if name in kept]
    group.version += 1
    group.changed_at = timezone.now()
    group.save()
    group.members.set(now.values())
    added = [user for key, user in now.items() if key not in had]
    removed = [user for key, user in had.items() if key not in now]
    told = {"added": _names(added), "removed": _names(removed)}
    _record_group("scim_group.changed", by, group, **told)
    is_renamed = mapped_roles(by.provider, [group]) != before
    _sync_roles(by, list({**had, **now}.values()) if is_renamed else added + removed, before)


def delete_group(by: Provisioner, group: ScimGroup) -> None:
    before, had = mapped_roles(by.provider, [group]), list(group.members.all())
    _record_group("scim_group.deleted", by, group, removed=_names(had))
    group.delete()
    _sync_roles(by, had, before)


def _deleted(by: Provisioner, given: UserFields) -> ScimUser | None:
    """The user whom the provider deleted and makes again, by an id that is never given twice."""
    if not by.provider.scim_external_id or not given.external_id:
        return None
    gone = ScimUser.objects.filter(issuer=by.provider.issuer, external_id=given.external_id)
    return gone.filter(deleted_at__isnull=False).select_for_update(no_key=True).first()


def _connected(by: Provisioner, given: UserFields) -> User | None:
    """The person whose connected account at the provider this is."""
    if by.provider.scim_external_id != "sub" or not given.external_id:
        return None
    found = Identity.objects.filter(issuer=by.provider.issuer, subject=given.external_id)
    identity = found.select_related("person").first()
    if identity is None:
        return None
    if identity.disconnected_at or _is_provisioned(identity):
        raise Conflict(_("This account is another user's here, or was disconnected by its person."))
    return identity.person


def _is_provisioned(identity: Identity) -> bool:
    return ScimUser.objects.filter(issuer=identity.issuer, person=identity.person_id).exists()


def _new_person(by: Provisioner, given: UserFields) -> User:
    said = {"preferred_username": given.user_name}
    reason = _("Provisioned by the identity provider.")
    return create_person(by.provider, said, actor=by.actor, reason=reason)


def _write(user: ScimUser, given: UserFields) -> None:
    user.user_name, user.external_id = given.user_name, given.external_id
    user.attributes = given.attributes


def _follow(by: Provisioner, user: ScimUser) -> None:
    """Disables the person, or enables whom the provider disabled before: an administrator's word
    stays."""
    person, reason = user.person, _("As the identity provider says.")
    if user.is_active is False and by.set_active(person, False, by=by.actor, reason=reason):
        person.refresh_from_db(fields=["is_active", "session_epoch"])
        user.disabled_epoch = person.session_epoch
        user.save(update_fields=["disabled_epoch"])
    elif user.is_active and user.disabled_epoch == person.session_epoch:
        by.set_active(person, True, by=by.actor, reason=reason)


def _members(by: Provisioner, ids: Collection[UUID]) -> list[ScimUser]:
    there = ScimUser.objects.filter(issuer=by.provider.issuer, deleted_at=None, pk__in=ids)
    found = list(there.select_related("person").order_by("pk"))
    if len(found) < len(ids):
        raise UnknownMember(_("A member is no user of this provider."))
    return found


def _is_held(by: Provisioner, names: Collection[str]) -> bool:
    """Whether a group that gives a role has one of these names: no second one takes its place."""
    mapped = [name for name in names if name in by.provider.groups]
    there = ScimGroup.objects.filter(issuer=by.provider.issuer)
    return any(there.filter(first_names__contains=[name]).exists() for name in mapped)


def _sync_roles(by: Provisioner, users: Collection[ScimUser], roles: set[str]) -> None:
    """Gives and takes these roles by the groups that there are now."""
    for user in users if roles else ():
        wanted = roles_of(by.provider, user.person) & roles
        set_mapped(by.provider, user.person, gained=wanted, lost=roles - wanted, actor=by.actor)


def _touch(groups: Collection[ScimGroup]) -> None:
    changed = ScimGroup.objects.filter(pk__in=[group.pk for group in groups])
    changed.update(version=F("version") + 1, changed_at=timezone.now())


def _names(users: Collection[ScimUser]) -> list[str]:
    return sorted(user.person.username for user in users)


def _record(action: str, by: Provisioner, user: ScimUser) -> None:
    names = {"person": user.person.username, "provider": by.provider.label}
    record(action, actor=by.actor, scim_id=str(user.pk), **names)


def _record_group(action: str, by: Provisioner, group: ScimGroup, **members: list[str]) -> None:
    names = {"group": group.display_name, "provider": by.provider.label}
    record(action, actor=by.actor, scim_id=str(group.pk), **names, **members)
