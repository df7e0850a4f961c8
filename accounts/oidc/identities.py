"""Whom a provider's word lets in. People are known by issuer and subject: an address of mail, which
another provider may give to anybody, opens no account that is there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts import display_names, role_changes, services, sessions
from accounts.models import BrowserSession, Identity, User
from accounts.oidc.authorization import ProviderAnswer
from accounts.oidc.group_mapping import (
    check_groups,
    follow_groups,
    groups_told,
    take_mapped_groups,
)
from accounts.oidc.providers import IdentityProvider, usable_providers
from accounts.roles import ensure_roles
from accounts.scim.linking import find_provisioned
from audit.services import Actor, record
from core.english import gettext as _
from core.errors import CountersignError
from core.text import lookalike_count

# Names are tried with a number behind them up to here.
NAMES_TRIED = 50


class NotAdmitted(CountersignError):
    """The provider's word is good, and lets nobody in here; says why, and what to do."""


def admit(provider: IdentityProvider, answer: ProviderAnswer) -> Identity:
    """The identity whose person may sign in; made, if policy allows. Raises NotAdmitted."""
    try:
        with transaction.atomic():
            return _admit(provider, answer)
    except IntegrityError as error:
        # Of two first sign-ins at once, one makes the account.
        raise NotAdmitted(_("You are signing in elsewhere at this moment. Begin again.")) from error


def connect(provider: IdentityProvider, answer: ProviderAnswer, person: User) -> Identity:
    """Adds the account at the provider to a person who is signed in. Raises NotAdmitted."""
    try:
        with transaction.atomic():
            return _connect_own(provider, answer.claims, person)
    except IntegrityError as error:
        raise NotAdmitted(_TAKEN) from error


@dataclass(frozen=True, slots=True)
class ConnectedAccount:
    """An identity, and what its provider is called."""

    identity: Identity
    provider: str


def connected_accounts(person: User) -> list[ConnectedAccount]:
    labels = {one.issuer: one.label for one in usable_providers()}
    # A provider that is no longer in the file has its address for a name.
    return [
        ConnectedAccount(one, labels.get(one.issuer, one.issuer))
        for one in person.identities.connected()
    ]


@transaction.atomic
def disconnect(identity: Identity, *, key: str | None) -> None:
    """Ends the sessions that it began, but for the one with this key, and takes the groups that
    came by it. The row stays: the account at the provider is this person's, or nobody's."""
    person = identity.person
    still = Identity.objects.connected().filter(pk=identity.pk)
    if not still.update(disconnected_at=timezone.now()):
        return
    begun = BrowserSession.objects.filter(identity=identity).exclude(key=key or "")
    sessions.end_by(person.actor, begun, reason=_("The account was disconnected."))
    names = {"person": person.username, "issuer": identity.issuer, "subject": identity.subject}
    record("identity.disconnected", actor=person.actor, **names)
    take_mapped_groups(identity)


_TAKEN = _("This account is used by another user.")
_DISCONNECTED = _(
    "This account was disconnected. Sign in another way and connect it again in your profile."
)


def _admit(provider: IdentityProvider, answer: ProviderAnswer) -> Identity:
    check_groups(provider, answer.claims)
    found = _find(provider, answer.claims)
    if found is not None and answer.pending.invitation:
        raise NotAdmitted(_TAKEN)
    if found is not None and found.disconnected_at:
        raise NotAdmitted(_DISCONNECTED)
    identity = found or _first(provider, answer)
    if not identity.person.is_active:
        raise NotAdmitted(_("Your account is disabled. Ask an administrator."))
    follow_groups(provider, identity, answer.claims)
    Identity.objects.filter(pk=identity.pk).update(
        last_used_at=timezone.now(), label=_label(answer.claims)
    )
    return identity


def _find(provider: IdentityProvider, claims: dict[str, Any]) -> Identity | None:
    found = Identity.objects.filter(issuer=provider.issuer, subject=claims["sub"])
    # Held: it is not disconnected at this moment.
    return found.select_for_update(of=("self",)).select_related("person").first()


def _first(provider: IdentityProvider, answer: ProviderAnswer) -> Identity:
    """The first sign-in of this account at the provider: by an invitation, or as policy says."""
    if answer.pending.invitation:
        person = _invited(answer.pending.invitation)
    elif provisioned := find_provisioned(provider, answer.claims):
        person = provisioned
    elif _may_come(provider, answer.claims):
        reason = _("At their first sign-in by the identity provider.")
        person = create_person(provider, answer.claims, actor=provider.actor, reason=reason)
    else:
        raise NotAdmitted(
            _(
                "Nobody here is connected to this account. Open your invitation, or sign in as "
                "before and connect it in your profile."
            )
        )
    return _connect(provider, answer.claims, person)


def _invited(text: str) -> User:
    try:
        return services.redeem_sign_in_link(text, at_provider=True)
    except services.LinkRefused as error:
        raise NotAdmitted(str(error)) from error


def _may_come(provider: IdentityProvider, claims: dict[str, Any]) -> bool:
    if provider.first_sign_in == "group":
        return not groups_told(provider, claims).isdisjoint(provider.allowed_groups)
    return provider.first_sign_in == "domain" and _mail_domain(claims) in {
        domain.casefold() for domain in provider.domains
    }


def _mail_domain(claims: dict[str, Any]) -> str:
    """The domain of an address that the provider says it has verified; else nothing."""
    mail = claims.get("email")
    # Some say it as a text.
    is_verified = claims.get("email_verified") in (True, "true")
    if not isinstance(mail, str) or not is_verified or mail.count("@") != 1:
        return ""
    return mail.partition("@")[2].casefold()


def create_person(
    provider: IdentityProvider, claims: dict[str, Any], *, actor: Actor, reason: str
) -> User:
    """A new person whom this provider told of. Raises NotAdmitted where no name is free."""
    ensure_roles()
    person = User.objects.create_user(_free_name(claims))
    groups = list(Group.objects.filter(name__in=provider.roles))
    role_changes.follow_provider(person, gained=groups, lost=[], provider=actor)
    record(
        "person.created",
        actor=actor,
        reason=reason,
        person=person.username,
        roles=sorted(group.name for group in groups),
    )
    display_names.give_way(person, actor=actor)
    return person


def _free_name(claims: dict[str, Any]) -> str:
    """A name that nobody has or had, made of what the provider calls them."""
    wanted = _wanted_name(claims)
    for number in range(1, NAMES_TRIED):
        name = wanted if number == 1 else f"{wanted}-{number}"
        if not services.why_not_named(name):
            return name
    raise NotAdmitted(_("No name is free for you here. Ask an administrator for an invitation."))


def _wanted_name(claims: dict[str, Any]) -> str:
    for claim in ("preferred_username", "nickname", "email", "name"):
        text = claims.get(claim)
        if isinstance(text, str) and text:
            name = User.normalize_username(text.partition("@")[0])
            name = re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:100].lower()
            if name and not lookalike_count(name):
                return name
    return "user"


def _connect_own(provider: IdentityProvider, claims: dict[str, Any], person: User) -> Identity:
    found = _find(provider, claims)
    if found is not None and found.person_id != person.pk:
        raise NotAdmitted(_TAKEN)
    if found is not None and not found.disconnected_at:
        raise NotAdmitted(_("This account is connected already."))
    return _connect(provider, claims, person, found)


def _connect(
    provider: IdentityProvider,
    claims: dict[str, Any],
    person: User,
    before: Identity | None = None,
) -> Identity:
    provisioned = find_provisioned(provider, claims)
    if provisioned not in (None, person):
        # The provider disables whom it provisioned: it would disable somebody else.
        raise NotAdmitted(_TAKEN)
    identity = before or Identity(person=person, issuer=provider.issuer, subject=claims["sub"])
    identity.disconnected_at, identity.label = None, _label(claims)
    identity.save()
    names = {"person": person.username, "issuer": provider.issuer, "subject": claims["sub"]}
    record("identity.connected", actor=person.actor, provider=provider.label, **names)
    return identity


def _label(claims: dict[str, Any]) -> str:
    for claim in ("email", "preferred_username", "name"):
        if isinstance(text := claims.get(claim), str) and text:
            return text[:200]
    return ""
