"""Groups of a provider, and the groups here that follow them at each sign-in.

Only groups that the file names are given and taken; those that an administrator gave stay.
"""

from __future__ import annotations

import logging
from typing import Any

from django.contrib.auth.models import Group

from accounts import role_changes, services
from accounts.models import Identity, User
from accounts.oidc.metadata import ProviderFailed
from accounts.oidc.providers import IdentityProvider
from accounts.roles import Role
from accounts.scim.roles import provisioned_roles, roles_of
from audit.services import Actor, record
from core.english import gettext as _

log = logging.getLogger(__name__)


def check_groups(provider: IdentityProvider, claims: dict[str, Any]) -> None:
    """Raises ProviderFailed where the groups are said elsewhere (Entra, of people in many): to
    take that for none would take roles away, or leave them."""
    is_wanted = provider.groups or provider.first_sign_in == "group"
    if is_wanted and _are_elsewhere(provider, claims):
        raise ProviderFailed(
            _("You are in more groups than the provider lists. Ask for a group filter there.")
        )


def _are_elsewhere(provider: IdentityProvider, claims: dict[str, Any]) -> bool:
    """Source: OpenID Connect Core 1.0, 5.6.2."""
    names = claims.get("_claim_names")
    return isinstance(names, dict) and provider.groups_claim in names


def groups_told(provider: IdentityProvider, claims: dict[str, Any]) -> set[str]:
    told = claims.get(provider.groups_claim)
    if isinstance(told, str):
        return {told}
    return {one for one in told if isinstance(one, str)} if isinstance(told, list) else set()


def token_groups(provider: IdentityProvider, claims: dict[str, Any]) -> tuple[str, ...] | None:
    """The groups that rules see in an access token, by their names in rules. None where they are
    not known: the client chooses what its token says, so silence is not taken for none."""
    told = claims.get(provider.groups_claim)
    theirs = [told] if isinstance(told, str) else told
    if not provider.token_groups or not isinstance(theirs, list):
        return None
    if _are_elsewhere(provider, claims) or not all(isinstance(one, str) for one in theirs):
        return None
    known = provider.token_groups
    return tuple(sorted({known[one] for one in theirs if one in known}))


def follow_groups(provider: IdentityProvider, identity: Identity, claims: dict[str, Any]) -> None:
    """Gives and takes the mapped groups, as the provider says now."""
    person = identity.person
    if not provider.groups:
        return
    told = groups_told(provider, claims)
    wanted = {ours for theirs, ours in provider.groups.items() if theirs in told}
    # What the provider provisions by SCIM is decided there alone.
    provisioned = provisioned_roles(provider)
    wanted = wanted - provisioned | roles_of(provider, person)
    had = set(_names(person))
    lost, gained = set(provider.groups.values()) - wanted, wanted - had
    set_mapped(provider, person, gained=gained, lost=lost, actor=provider.actor)
    names = ((gained - provisioned) | {*identity.mapped_groups}) & {*_names(person)}
    Identity.objects.filter(pk=identity.pk).update(mapped_groups=sorted(names))


def take_mapped_groups(identity: Identity) -> None:
    """Takes the groups that the provider's mapping gave, for good."""
    person = identity.person
    had = list(person.groups.filter(name__in=identity.mapped_groups))
    Identity.objects.filter(pk=identity.pk).update(mapped_groups=[])
    if not (lost := _losable(person, had)):
        return
    before = _names(person)
    role_changes.take(person, lost, by=person)
    names = {"person": person.username, "before": before, "after": _names(person)}
    reason = _("The account was disconnected.")
    record("person.groups_set", actor=person.actor, reason=reason, **names)


def set_mapped(
    provider: IdentityProvider, person: User, *, gained: set[str], lost: set[str], actor: Actor
) -> None:
    """Gives and takes groups by name. The last administrator stays one."""
    before = _names(person)
    given = _groups(provider, gained - {*before})
    taken = _losable(person, list(person.groups.filter(name__in=lost)))
    role_changes.follow_provider(person, gained=given, lost=taken, provider=actor)
    after = _names(person)
    if before != after:
        names = {"person": person.username, "before": before, "after": after}
        reason = _("As the groups of the identity provider say.")
        record("person.groups_set", actor=actor, reason=reason, **names)


def _groups(provider: IdentityProvider, names: set[str]) -> list[Group]:
    found = list(Group.objects.filter(name__in=names))
    for name in names - {group.name for group in found}:
        log.error("provider %s: there is no group “%s” here", provider.slug, name)
    return found


def _losable(person: User, lost: list[Group]) -> list[Group]:
    """The last administrator stays one, whatever the provider says."""
    if not any(group.name == Role.ADMINISTRATOR for group in lost):
        return lost
    try:
        services.keep_an_administrator(person)
    except services.AccountRefused as error:
        log.warning("%s", error)
        return [group for group in lost if group.name != Role.ADMINISTRATOR]
    return lost


def _names(person: User) -> list[str]:
    return sorted(person.groups.values_list("name", flat=True))
