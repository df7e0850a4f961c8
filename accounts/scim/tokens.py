"""SCIM tokens of identity providers: issued, confirmed, rotated, revoked and looked up.

Whoever has one can make users and, by the provider's mapping, approvers: issuing one takes two
administrators wherever giving such a role does.
"""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone

from accounts import role_changes, tokens
from accounts.actors import AccountRefused
from accounts.independence import are_independent, unconfirmed_inviters
from accounts.models import ScimToken, User
from accounts.oidc.providers import IdentityProvider, usable_providers
from accounts.services import OVERLAP
from audit.services import Actor, record
from core.english import gettext as _
from core.english import ngettext

MAX_DAYS = 365


@transaction.atomic
def issue(
    provider: IdentityProvider, *, by: User, days: int, replaces: ScimToken | None = None
) -> tuple[ScimToken, str]:
    """Creates a token; its text is not stored: show it now or never."""
    if not 1 <= days <= MAX_DAYS:
        raise AccountRefused(_("Use a number from 1 to %d.") % MAX_DAYS)
    _refuse_beyond_own(provider.issuer, by)
    text = tokens.make(tokens.SCIM)
    parts = tokens.parse(text, tokens.SCIM)
    assert parts is not None
    token = ScimToken.objects.create(
        issuer=provider.issuer,
        public_id=parts.public_id,
        digest=parts.digest,
        created_by=by,
        is_confirmed=not role_changes.needs_second(by),
        replaces=replaces,
        expires_at=timezone.now() + timedelta(days=days),
    )
    reason = ngettext("Valid for %d day.", "Valid for %d days.", days) % days
    _record("issued", token, by, provider.label, reason)
    _end_replaced(token)
    return token, text


@transaction.atomic
def rotate(token: ScimToken, provider: IdentityProvider, *, by: User) -> tuple[ScimToken, str]:
    """Creates a token with the same lifetime; the old one ends an hour after the new one holds."""
    days = round((token.expires_at - token.created_at) / timedelta(days=1))
    made, text = issue(provider, by=by, days=min(MAX_DAYS, max(1, days)), replaces=token)
    _record("rotated", token, by, provider.label)
    return made, text


def why_not_confirm(token: ScimToken, by: User) -> str:
    """Why `by` may not confirm it, as a sentence; empty if they may."""
    if by.pk == token.created_by_id:
        return _("Another administrator than who issued it has to confirm.")
    if not token.created_by.is_active or not token.created_by.has_perm("accounts.change_user"):
        return _("Who issued it may not issue any more. Revoke it, and issue another token.")
    if not are_independent(by, token.created_by, unconfirmed_inviters()):
        return _("One of you let the other in, and nobody else has confirmed that account.")
    return ""


@transaction.atomic
def confirm(token: ScimToken, *, by: User) -> None:
    """Raises AccountRefused."""
    if why := why_not_confirm(token, by):
        raise AccountRefused(why)
    if not any(one.issuer == token.issuer for one in usable_providers()):
        # Nobody knows which roles it will give.
        raise AccountRefused(_("There is no such identity provider."))
    _refuse_beyond_own(token.issuer, by)
    unconfirmed = ScimToken.objects.filter(pk=token.pk, is_confirmed=False, revoked_at=None)
    if not unconfirmed.update(is_confirmed=True):
        raise AccountRefused(_("Another administrator answered this request first."))
    token.is_confirmed = True
    _record("confirmed", token, by, label_of(token.issuer))
    _end_replaced(token)


@transaction.atomic
def revoke(token: ScimToken, *, by: User) -> bool:
    """False if it was revoked before."""
    if not ScimToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    _record("revoked", token, by, label_of(token.issuer))
    return True


def look_up(text: str) -> ScimToken | None:
    """The valid token with this text."""
    shown = tokens.parse(text, tokens.SCIM)
    if shown is None:
        return None
    token = ScimToken.objects.valid().filter(public_id=shown.public_id).first()
    digest = bytes(token.digest) if token else tokens.NOBODY
    return token if tokens.is_token(text, shown, digest, tokens.SCIM) else None


def note_used(token: ScimToken) -> None:
    now = timezone.now()
    if token.last_used_at is None or token.last_used_at < now - timedelta(minutes=1):
        ScimToken.objects.filter(pk=token.pk).update(last_used_at=now)


def actor_of(token: ScimToken, provider: IdentityProvider) -> Actor:
    """The actor of changes that are made with it."""
    return Actor("system", None, f"{provider.label[:60]}, SCIM token {token.public_id}")


def label_of(issuer: str) -> str:
    """The provider's name; its address where it is no longer in the file."""
    return next((one.label for one in usable_providers() if one.issuer == issuer), issuer)


def _refuse_beyond_own(issuer: str, by: User) -> None:
    """A token gives every role of the provider's mapping. Raises AccountRefused."""
    there = [one for one in usable_providers() if one.issuer == issuer]
    names = {name for one in there for name in (*one.groups.values(), *one.roles)}
    role_changes.refuse_beyond_own(Group.objects.filter(name__in=names), by)


def _end_replaced(token: ScimToken) -> None:
    if token.replaces_id and token.is_confirmed:
        ends = timezone.now() + OVERLAP
        old = ScimToken.objects.filter(pk=token.replaces_id, expires_at__gt=ends)
        old.update(expires_at=ends)


def _record(what: str, token: ScimToken, by: User, label: str, reason: str = "") -> None:
    names = {"token": str(token), "provider": label}
    record(f"scim_token.{what}", actor=by.actor, reason=reason, **names)
