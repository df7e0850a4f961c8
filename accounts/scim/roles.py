"""Roles that the groups of a provider give by its mapping (`groups` in the host's file)."""

from __future__ import annotations

from collections.abc import Iterable

from accounts.models import ScimGroup, User
from accounts.oidc.providers import IdentityProvider


def mapped_roles(provider: IdentityProvider, groups: Iterable[ScimGroup]) -> set[str]:
    names = (name for group in groups for name in group.first_names)
    return {provider.groups[name] for name in names if name in provider.groups}


def provisioned_roles(provider: IdentityProvider) -> set[str]:
    """Those that groups of this provider give: claims at sign-in say nothing about them."""
    return mapped_roles(provider, ScimGroup.objects.filter(issuer=provider.issuer))


def roles_of(provider: IdentityProvider, person: User) -> set[str]:
    theirs = ScimGroup.objects.filter(issuer=provider.issuer, members__person=person)
    return mapped_roles(provider, theirs)
