"""Reads the signed-in person with roles and permissions: one query a page instead of five."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, F, OuterRef, QuerySet, Value
from django.db.models.functions import Concat, JSONObject

from accounts import scopes
from accounts.models import (
    SCOPED_FIELDS,
    CodeApp,
    CustomRole,
    FactorRequirement,
    Passkey,
    User,
)
from accounts.relying_party import rp_id
from accounts.scopes import ScopeTarget, scoped_role


class Backend(ModelBackend):
    def get_user(self, user_id: Any) -> User | None:
        found = with_rights().filter(pk=user_id).first()
        if found is None or not self.user_can_authenticate(found):
            return None
        return keep_rights(found)

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        """Everywhere; or for the given ScopeTarget, else for the object of the request."""
        if super().has_perm(user_obj, perm):
            return True
        if perm not in scopes.SCOPABLE or not user_obj.is_active or not user_obj.scoped_roles:
            return False
        target: ScopeTarget | None = user_obj.target if obj is None else obj
        return target is not None and scopes.permits(user_obj.scoped_roles, perm, target)


def keep_rights(found: Any) -> User:
    """The person of a row of `with_rights`: nothing more is read when they are asked about."""
    found.group_names = found.names_of_groups
    found.is_factor_required = found.must_have_factor
    found.proof_means = (found.has_passkey, found.has_codes)
    found.own_permissions = frozenset(found.own_rights)
    if not found.is_superuser:
        # Where ModelBackend keeps them once they were asked for.
        found._perm_cache = {*found.own_rights, *found.rights_of_groups}
    found.scoped_roles = [
        scoped_role(*(row[field] for field in SCOPED_FIELDS)) for row in found.limited_roles
    ]
    person: User = found
    return person


def with_rights() -> QuerySet[Any]:
    groups = Group.objects.filter(user=OuterRef("pk")).order_by("name").values("name")
    limited = CustomRole.objects.filter(group__user=OuterRef("pk")).exclude(scoped_permissions=[])
    terms = JSONObject(**{field: F(field) for field in SCOPED_FIELDS})
    return User.objects.annotate(
        names_of_groups=ArraySubquery(groups),
        limited_roles=ArraySubquery(limited.annotate(terms=terms).values("terms")),
        has_passkey=Exists(
            Passkey.objects.usable().filter(person=OuterRef("pk"), rp_id=rp_id()),
        ),
        has_codes=Exists(CodeApp.objects.filter(person=OuterRef("pk")).exclude(confirmed_at=None)),
        must_have_factor=Exists(FactorRequirement.objects.filter(group__user=OuterRef("pk"))),
        own_rights=ArraySubquery(named(Permission.objects.filter(user=OuterRef("pk")))),
        rights_of_groups=ArraySubquery(
            named(Permission.objects.filter(group__user=OuterRef("pk")))
        ),
    )


def named(rights: QuerySet[Permission]) -> QuerySet[Any, Any]:
    """Permissions in the form that `has_perm` takes."""
    named = Concat(F("content_type__app_label"), Value("."), F("codename"))
    return rights.order_by().annotate(named=named).values("named")
