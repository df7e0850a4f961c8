"""The person whom a provider made here by SCIM, when they sign in there for the first time."""

from __future__ import annotations

from typing import Any

from accounts.models import Identity, ScimUser, User
from accounts.oidc.providers import IdentityProvider


def find_provisioned(provider: IdentityProvider, claims: dict[str, Any]) -> User | None:
    """Found by the provider's own id of them alone. One who was deleted there is found too: they
    are disabled, and get no second account."""
    told = claims.get(provider.scim_external_id) if provider.scim_external_id else None
    if not isinstance(told, str) or not told:
        return None
    made = ScimUser.objects.filter(issuer=provider.issuer, external_id=told)
    found = made.select_related("person").order_by("deleted_at").last()
    if found is None or Identity.objects.filter(person=found.person, issuer=found.issuer).exists():
        # Somebody signs in as them already.
        return None
    return found.person
