"""Tokens that a user issued for others and has seen: disabling the user does not end them."""

from __future__ import annotations

from typing import NamedTuple

from django.urls import reverse
from django.utils import timezone

from accounts.models import AgentToken, ScimToken, User
from accounts.oidc.providers import usable_providers

# Pages list no more.
LISTED = 20
# Of the pages that list them otherwise.
SEES_PROVIDERS = "accounts.change_user"
SEES_AGENTS = "accounts.view_agenttoken"


class IssuedToken(NamedTuple):
    token: str
    # The agent, or the identity provider.
    holder: str
    # The page that rotates and revokes it.
    address: str


def lasting_tokens(person: User, *, reader: User) -> list[IssuedToken]:
    """The newest that still open something, or that somebody else may yet confirm; of those, what
    the reader may see."""
    found = _of_providers(person) if reader.has_perm(SEES_PROVIDERS) else []
    agents = _of_agents(person) if reader.has_perm(SEES_AGENTS) else []
    return [*found, *agents][:LISTED]


def _of_providers(person: User) -> list[IssuedToken]:
    labels = {one.issuer: one.label for one in usable_providers()}
    there = reverse("accounts:provisioning")
    found = ScimToken.objects.filter(created_by=person, revoked_at=None)
    rows = found.filter(expires_at__gt=timezone.now())[:LISTED]
    return [IssuedToken(str(one), labels.get(one.issuer, one.issuer), there) for one in rows]


def _of_agents(person: User) -> list[IssuedToken]:
    """Those of their own agents are revoked with the account. A client at an identity provider is
    no token of ours: nobody has seen one."""
    found = (
        AgentToken.objects.valid().filter(created_by=person, issuer="").exclude(agent__owner=person)
    )
    return [
        IssuedToken(str(one), one.agent.name, reverse("accounts:agent", args=[one.agent.name]))
        for one in found.select_related("agent")[:LISTED]
    ]
