"""Reads the signed-in person with roles and permissions: one query a page instead of four."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, F, OuterRef, QuerySet, Value
from django.db.models.functions import Concat

from accounts.models import CodeApp, FactorRequirement, Passkey, User
from accounts.relying_party import rp_id


class Backend(ModelBackend):
    def get_user(self, user_id: Any) -> User | None:
        found = _with_rights().filter(pk=user_id).first()
        if found is None or not self.user_can_authenticate(found):
            return None
        found.group_names = found.names_of_groups
        found.is_factor_required = found.must_have_factor
        found.proof_means = (found.has_passkey, found.has_codes)
        if not found.is_superuser:
            # Where ModelBackend keeps them once they were asked for.
            found._perm_cache = {*found.own_rights, *found.rights_of_groups}
        person: User = found
        return person


def _with_rights() -> QuerySet[Any]:
    groups = Group.objects.filter(user=OuterRef("pk")).order_by("name").values("name")
    return User.objects.annotate(
        names_of_groups=ArraySubquery(groups),
        has_passkey=Exists(
            Passkey.objects.usable().filter(person=OuterRef("pk"), rp_id=rp_id()),
        ),
        has_codes=Exists(CodeApp.objects.filter(person=OuterRef("pk")).exclude(confirmed_at=None)),
        must_have_factor=Exists(FactorRequirement.objects.filter(group__user=OuterRef("pk"))),
        own_rights=ArraySubquery(_named(Permission.objects.filter(user=OuterRef("pk")))),
        rights_of_groups=ArraySubquery(
            _named(Permission.objects.filter(group__user=OuterRef("pk")))
        ),
    )


def _named(rights: QuerySet[Permission]) -> QuerySet[Any, Any]:
    """Permissions in the form that `has_perm` takes."""
    named = Concat(F("content_type__app_label"), Value("."), F("codename"))
    return rights.order_by().annotate(named=named).values("named")
