"""Which roles need a second factor: their people set one up before they do anything else."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import Group
from django.db import transaction

from accounts.models import FactorRequirement, User
from audit.services import record


def groups() -> list[Group]:
    """Those that need one."""
    return list(Group.objects.filter(factor_requirement__isnull=False).order_by("name"))


def groups_of(person: User) -> list[str]:
    """The names of this person's groups that need one."""
    required = {group.name for group in groups()}
    return [name for name in person.group_names if name in required]


@transaction.atomic
def set_groups(wanted: Collection[Group], *, by: User) -> None:
    """In force from the next request of everybody."""
    before, after = _names(groups()), _names(wanted)
    if before == after:
        return
    FactorRequirement.objects.exclude(group__in=wanted).delete()
    for group in wanted:
        FactorRequirement.objects.get_or_create(group=group)
    record("roles.factor_set", actor=by.actor, before=before, after=after)


def _names(of: Collection[Group]) -> list[str]:
    return sorted(group.name for group in of)
