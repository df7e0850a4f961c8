"""Why users hold permissions: the roles that give them, and those that would for other tags.

That somebody holds one is said by `User.has_perm` alone (accounts/backend.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django.contrib.auth.models import Group, Permission
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.backend import keep_rights, named, with_rights
from accounts.models import SCOPED_FIELDS, Identity, UsedName, User
from accounts.roles import Role
from accounts.scopes import ScopedRole, ScopeTarget, scoped_role


class SourceKind(StrEnum):
    ROLE = "role"
    SCOPED_ROLE = "scoped_role"
    OWN = "own"
    SUPERUSER = "superuser"


class PermissionSource(NamedTuple):
    """A role, or something else, that gives a permission."""

    kind: SourceKind
    role: str = ""
    # To which the role is limited, as "server:payments agent:office".
    tags: str = ""


@dataclass(frozen=True, slots=True)
class RoleBook:
    """All groups and roles with what they permit."""

    # Permission → names of the groups that give it everywhere.
    everywhere: Mapping[str, frozenset[str]]
    limited: tuple[ScopedRole, ...]
    # Whether the reader may see groups and roles that the installation made.
    shows_own: bool = True

    def names(self, permission: str) -> tuple[list[str], bool]:
        """The roles that give it, as far as the reader may see them, and whether there are more."""
        limited = {role.name for role in self.limited if permission in role.permissions}
        found = self.everywhere[permission] | limited
        shown = found if self.shows_own else found & frozenset(Role)
        return sorted(shown), shown != found


def read_roles(*, shows_own: bool = True) -> RoleBook:
    """In one query."""
    everywhere: dict[str, set[str]] = defaultdict(set)
    limited = []
    terms = [f"custom_role__{field}" for field in SCOPED_FIELDS[1:]]
    permissions = named(Permission.objects.filter(group=OuterRef("pk")))
    groups = Group.objects.annotate(given=ArraySubquery(permissions))
    for name, given, scoped, *tags in groups.values_list("name", "given", *terms):
        for permission in given:
            everywhere[permission].add(name)
        if scoped:
            limited.append(scoped_role(name, scoped, *tags))
    found = {permission: frozenset(names) for permission, names in everywhere.items()}
    return RoleBook(defaultdict(frozenset, found), tuple(limited), shows_own)


def people_with_rights() -> QuerySet[Any]:
    """Users; `person_of` reads nothing more of a row."""
    identities = Identity.objects.connected().filter(person=OuterRef("pk"))
    names = UsedName.objects.filter(person=OuterRef("pk")).values("name")
    found: QuerySet[Any] = with_rights().annotate(
        is_at_provider=Exists(identities), used_names=ArraySubquery(names)
    )
    return found.select_related("let_in_by")


def person_of(found: Any) -> User:
    found.has_identity = found.is_at_provider
    found.all_names = frozenset({found.username, *found.used_names})
    return keep_rights(found)


def sources(
    person: User, permission: str, target: ScopeTarget | None, book: RoleBook
) -> list[PermissionSource]:
    """The sources of this person's permission, for an object or everywhere."""
    given = [PermissionSource(SourceKind.SUPERUSER)] if person.is_superuser else []
    if permission in person.own_permissions:
        given.append(PermissionSource(SourceKind.OWN))
    names = book.everywhere[permission]
    given += [
        PermissionSource(SourceKind.ROLE, name) for name in person.group_names if name in names
    ]
    if target is not None:
        given += [_scoped(role) for role in person.scoped_roles if role.permits(permission, target)]
    return given


def missed(person: User, permission: str, target: ScopeTarget | None) -> list[PermissionSource]:
    """Roles of this person that give the permission for other objects."""
    roles = [role for role in person.scoped_roles if permission in role.permissions]
    return [
        _scoped(role) for role in roles if target is None or not role.permits(permission, target)
    ]


def holders(permission: str, target: ScopeTarget | None, book: RoleBook) -> Q:
    """The users to whom a role or they themselves give it; of them, `has_perm` decides."""
    app, _dot, codename = permission.partition(".")
    names = {*book.everywhere[permission]}
    if target is not None:
        names |= {role.name for role in book.limited if role.permits(permission, target)}
    by_role = User.groups.through.objects.filter(group__name__in=names)
    own = User.user_permissions.through.objects.filter(
        permission__content_type__app_label=app, permission__codename=codename
    )
    # Each is read once: as joins they would be combined with each other, for every user.
    given = Q(pk__in=by_role.values("user")) | Q(pk__in=own.values("user"))
    return Q(is_active=True) & (Q(is_superuser=True) | given)


def _scoped(role: ScopedRole) -> PermissionSource:
    tags = sorted(f"{kind}:{tag}" for kind, some in role.tags.items() for tag in some)
    return PermissionSource(SourceKind.SCOPED_ROLE, role.name, " ".join(tags))
