"""Making, changing and retiring roles. Each change writes its entry in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts import role_changes
from accounts.actors import AccountRefused
from accounts.models import CustomRole, User
from accounts.oidc.providers import BadConfiguration, providers
from accounts.permission_names import PERMISSION_NAMES
from accounts.roles import Role, shown_names
from accounts.scopes import SCOPABLE
from audit.services import record
from core.english import gettext as _
from core.look_alikes import skeleton
from core.text import hidden_count, lookalike_count

TAGS_MAX, TAG_LENGTH = 20, 40


@dataclass(frozen=True, slots=True)
class RoleTerms:
    """The permissions of a role, and for which tags; without tags everywhere."""

    permissions: frozenset[str]
    server_tags: tuple[str, ...] = ()
    toolset_tags: tuple[str, ...] = ()
    agent_tags: tuple[str, ...] = ()

    @property
    def is_scoped(self) -> bool:
        return bool(self.server_tags or self.toolset_tags or self.agent_tags)

    @property
    def scoped(self) -> frozenset[str]:
        return self.permissions & SCOPABLE.keys() if self.is_scoped else frozenset()

    @property
    def everywhere(self) -> frozenset[str]:
        return self.permissions - self.scoped


@transaction.atomic
def create(name: str, *, description: str, terms: RoleTerms, by: User) -> CustomRole:
    """Gives nobody anything: whoever is put into the role gets it. Raises AccountRefused."""
    why = why_not_named(name) or why_not_terms(terms, by) or _why_not_mapped(name, terms)
    if why:
        raise AccountRefused(why)
    role = CustomRole(group=_group(name), description=description, created_by=by)
    _set(role, terms)
    record("role.created", actor=by.actor, role=name, description=description, **_facts(terms))
    return role


@transaction.atomic
def change(role: CustomRole, *, description: str, terms: RoleTerms, by: User) -> None:
    """Takes effect for everybody who has it with their next request. Raises AccountRefused."""
    locked = CustomRole.objects.select_for_update().get(pk=role.pk)
    if locked.retired_at:
        raise AccountRefused(_("The role “%s” is retired.") % locked)
    before = terms_of(locked)
    if why := why_not_terms(terms, by) or _why_not_widened(before, terms):
        raise AccountRefused(why)
    locked.description = description
    _set(locked, terms)
    facts = {"before": _facts(before), "after": _facts(terms)}
    record("role.changed", actor=by.actor, role=str(locked), description=description, **facts)


@transaction.atomic
def retire(role: CustomRole, *, by: User, reason: str = "") -> None:
    """Takes it from everybody, for good. Its name stays: no later role inherits what names it.
    Raises AccountRefused."""
    locked = CustomRole.objects.select_for_update().get(pk=role.pk)
    if locked.retired_at:
        return
    if waiting := [one for one in role_changes.requested() if one.role == str(role)]:
        said = _("“%(person)s” waits for a second administrator to give “%(role)s”. Answer first.")
        raise AccountRefused(said % {"person": waiting[0].person.username, "role": role})
    CustomRole.objects.filter(pk=role.pk).update(retired_at=timezone.now(), scoped_permissions=[])
    people = list(role.group.user_set.order_by("username"))
    for person in people:
        role_changes.take(person, [role.group], by=by)
    role.group.permissions.clear()
    names = [person.username for person in people]
    record("role.retired", actor=by.actor, reason=reason, role=str(role), people=names)


def terms_of(role: CustomRole) -> RoleTerms:
    held = role.group.permissions.values_list("content_type__app_label", "codename")
    everywhere = {f"{app}.{codename}" for app, codename in held}
    return RoleTerms(
        frozenset(everywhere | set(role.scoped_permissions)),
        tuple(role.server_tags),
        tuple(role.toolset_tags),
        tuple(role.agent_tags),
    )


def why_not_named(name: str) -> str:
    """Why no role may have this name, as a sentence; empty if one may."""
    if not name or name != name.strip() or not name.isprintable():
        return _("Give a name.")
    if lookalike_count(name):
        return _("“%s” mixes alphabets whose letters look alike. Write it in one of them.") % name
    if hidden_count(name):
        return _("That name has characters that cannot be seen.")
    groups = list(Group.objects.order_by("name").values_list("name", flat=True))
    if name.casefold() in map(str.casefold, groups):
        return _("There is a group or role “%s”, or was.") % name
    look = skeleton(name)
    if alike := [one for one in (*groups, *shown_names()) if look and skeleton(one) == look]:
        return _("“%(name)s” passes for “%(other)s”.") % {"name": name, "other": alike[0]}
    return ""


def why_not_terms(terms: RoleTerms, by: User) -> str:
    """Why `by` may not make such a role, as a sentence; empty if they may."""
    if not terms.permissions:
        return _("Choose at least one permission.")
    if unknown := sorted(terms.permissions - PERMISSION_NAMES.keys()):
        return _("There is no permission “%s”.") % unknown[0]
    if terms.is_scoped and (wide := sorted(filter(_is_wide, terms.permissions))):
        return _("“%s” cannot be limited to tags.") % PERMISSION_NAMES[wide[0]]
    return why_not_given(terms.permissions, by)


def why_not_given(permissions: Iterable[str], by: User) -> str:
    """Administrators give every role, deciding ones by two (accounts/role_changes.py). Anybody else
    gives what they have."""
    if Role.ADMINISTRATOR in by.group_names or by.is_superuser:
        return ""
    missing = sorted(name for name in permissions if not by.has_perm(name))
    if not missing:
        return ""
    return _("You do not have the permission “%s” yourself.") % PERMISSION_NAMES.get(
        missing[0], missing[0]
    )


def _is_wide(permission: str) -> bool:
    """Whether it changes something, wherever that is: to look, a role may everywhere."""
    return permission not in SCOPABLE and not permission.partition(".")[2].startswith("view_")


def _why_not_widened(before: RoleTerms, after: RoleTerms) -> str:
    """Deciding permissions take two administrators for each person: nobody gets them by the way.
    Not of a role that nobody has either: an identity provider's mapping may give it already, and
    somebody may be put into it at this moment."""
    if not _decides(after.everywhere - before.everywhere):
        return ""
    return _("No role begins to decide or to administer afterwards. Create another role.")


def _why_not_mapped(name: str, terms: RoleTerms) -> str:
    """The same of a name that a mapping gives already, to people for whom no second administrator
    was asked."""
    if not _decides(terms.everywhere):
        return ""
    try:
        known = providers()
    except BadConfiguration:
        # It may give the name as soon as it can be read again.
        said = _("The file of identity providers cannot be read: it may give “%s” already.")
        return said % name
    if all(name not in (*one.groups.values(), *one.roles) for one in known):
        return ""
    said = _("The file of identity providers gives “%s” already. Create the role, then map it.")
    return said % name


def _decides(permissions: Iterable[str]) -> bool:
    names = {name.partition(".")[2] for name in permissions}
    return not names.isdisjoint(role_changes.DECIDING_PERMISSIONS)


def _group(name: str) -> Group:
    try:
        with transaction.atomic():
            return Group.objects.create(name=name)
    except IntegrityError as error:
        raise AccountRefused(_("“%s” has just been taken.") % name) from error


def _set(role: CustomRole, terms: RoleTerms) -> None:
    role.scoped_permissions = sorted(terms.scoped)
    role.server_tags = list(terms.server_tags)
    role.toolset_tags = list(terms.toolset_tags)
    role.agent_tags = list(terms.agent_tags)
    role.save()
    rows = Permission.objects.select_related("content_type")
    role.group.permissions.set(
        row for row in rows if f"{row.content_type.app_label}.{row.codename}" in terms.everywhere
    )


def _facts(terms: RoleTerms) -> dict[str, list[str]]:
    return {
        "permissions": sorted(terms.permissions),
        "server_tags": list(terms.server_tags),
        "toolset_tags": list(terms.toolset_tags),
        "agent_tags": list(terms.agent_tags),
    }


def read_tags(text: str) -> tuple[str, ...]:
    """Words of a form's field, in lower case, each once. Raises AccountRefused."""
    words = tuple(sorted(set(text.lower().replace(",", " ").split())))
    if len(words) > TAGS_MAX or any(len(word) > TAG_LENGTH for word in words):
        said = _("At most %(count)d tags, each of at most %(length)d characters.")
        raise AccountRefused(said % {"count": TAGS_MAX, "length": TAG_LENGTH})
    if wrong := [word for word in words if lookalike_count(word) or not word.isprintable()]:
        raise AccountRefused(_("“%s” is no tag.") % wrong[0])
    return words


def own_tags(person: User, kind: str) -> Collection[str]:
    """Tags to which a role of this person is limited: they never put one on anything."""
    return {tag for role in person.scoped_roles for tag in role.tags[kind]}
