"""Service accounts and their tokens. Each change writes its entry in the same transaction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts import scope_confirmations, tokens
from accounts.actors import AccountRefused, By, ServiceCaller, acting
from accounts.backend import Backend
from accounts.models import Proof, ServiceAccount, ServiceToken, User
from accounts.permission_names import PERMISSION_NAMES
from accounts.services import MAX_DAYS, OVERLAP
from audit.services import record
from core.english import gettext as _
from core.english import ngettext

# Permissions that the REST API asks for (gateway/rest/v1/). None decides on calls, and none gives
# anybody a permission: users, roles and service accounts are made and changed in the console alone,
# and by REST a user is only disabled.
READING = (
    "registry.view_server",
    "registry.view_tool",
    "registry.view_definition",
    "registry.view_discovery",
    "registry.view_toolset",
    "accounts.view_agent",
    "accounts.view_agenttoken",
    "accounts.view_user",
    "policies.view_rule",
    "policies.view_limit",
    "policies.view_policyplan",
    "calls.view_call",
    "approvals.view_approval",
    "approvals.view_grant",
    "audit.view_entry",
    "audit.export_entry",
    "notifications.view_webhook",
    "notifications.view_oncallschedule",
)
CHANGING = (
    "registry.add_server",
    "registry.change_server",
    "registry.operate_server",
    "registry.change_tool",
    "registry.add_toolset",
    "registry.change_toolset",
    "accounts.add_agent",
    "accounts.change_agent",
    "accounts.add_agenttoken",
    "accounts.change_agenttoken",
    # To disable users: REST changes nothing else of them.
    "accounts.change_user",
    "policies.add_rule",
    "policies.change_rule",
    "policies.delete_rule",
    "policies.add_limit",
    "policies.change_limit",
    "policies.delete_limit",
    "policies.add_policyplan",
    "policies.apply_policyplan",
    "calls.cancel_call",
    "calls.begin_freeze",
    "calls.end_freeze",
    "approvals.revoke_grant",
    "notifications.add_webhook",
    "notifications.change_webhook",
    "notifications.delete_webhook",
    "notifications.change_oncallschedule",
)
SCOPES = (*READING, *CHANGING)


@dataclass(frozen=True, slots=True)
class ServiceBearer:
    """An authenticated service account's token, and what it opens now."""

    token: ServiceToken
    scopes: frozenset[str]

    @property
    def caller(self) -> ServiceCaller:
        return ServiceCaller(self.token.account, self.token.created_by, self.scopes)


@transaction.atomic
def create(name: str, *, purpose: str, scopes: Collection[str], by: User) -> ServiceAccount:
    """Raises AccountRefused."""
    if why := why_not_scopes(scopes, by):
        raise AccountRefused(why)
    account = ServiceAccount(name=name, purpose=purpose, scopes=sorted(scopes), created_by=by)
    try:
        account.full_clean()
    except ValidationError as error:
        raise AccountRefused(" ".join(error.messages)) from error
    account.save()
    _record("service_account.created", account, by, purpose=purpose, scopes=account.scopes)
    return account


def why_not_scopes(scopes: Collection[str], by: User) -> str:
    """Why `by` may not give these, as a sentence; empty if they may."""
    if not scopes:
        return _("Choose at least one permission.")
    if unknown := sorted(set(scopes) - set(SCOPES)):
        return _("REST asks for no permission “%s”.") % unknown[0]
    if missing := sorted(scope for scope in scopes if not by.has_perm(scope)):
        return _("You do not have the permission “%s” yourself.") % PERMISSION_NAMES[missing[0]]
    return ""


def changing(scopes: Collection[str]) -> list[str]:
    """Those of them with which a token changes something: a user confirms them."""
    return [scope for scope in CHANGING if scope in scopes]


@transaction.atomic
def set_scopes(
    account: ServiceAccount, scopes: Collection[str], *, by: User, proof: Proof | None = None
) -> None:
    """From the next request on, on every process. `proof`: where permissions to change are added.
    Raises AccountRefused."""
    before = _locked_scopes(account)
    added = set(scopes) - set(before)
    if (not scopes or added) and (why := why_not_scopes(added, by)):
        raise AccountRefused(why)
    confirmed = _confirmed(account, scopes, by, proof) if changing(added) else {}
    account.scopes = sorted(scopes)
    account.save(update_fields=["scopes"])
    if before != account.scopes:
        facts: dict[str, Any] = {"before": before, "after": account.scopes, **confirmed}
        _record("service_account.scopes_set", account, by, **facts)


def _locked_scopes(account: ServiceAccount) -> list[str]:
    rows = ServiceAccount.objects.select_for_update().filter(pk=account.pk)
    return list(rows.values_list("scopes", flat=True).get())


def _confirmed(
    account: ServiceAccount, scopes: Collection[str], by: User, proof: Proof | None
) -> dict[str, str]:
    """The entry's detail. Raises AccountRefused."""
    scope_confirmations.check(account, scopes, by, proof)
    assert proof is not None
    return {"proof": proof.statement_digest}


@transaction.atomic
def set_enabled(account: ServiceAccount, enabled: bool, *, by: User, reason: str = "") -> None:
    """Every request asks the row: what is disabled is refused on every process at once."""
    rows = ServiceAccount.objects.filter(pk=account.pk, enabled=not enabled)
    if not rows.update(enabled=enabled):
        return
    action = "service_account.enabled" if enabled else "service_account.disabled"
    _record(action, account, by, reason=reason)


@transaction.atomic
def issue_token(
    account: ServiceAccount, *, by: User, days: int = 30, proof: Proof | None = None
) -> str:
    """Creates a token and returns its text, which is not stored. `proof`: where the account has
    permissions to change. Raises AccountRefused."""
    if not 1 <= days <= MAX_DAYS:
        raise AccountRefused(
            _("A token is valid for 1 to %(max)d days; %(days)d is not between them.")
            % {"max": MAX_DAYS, "days": days}
        )
    scopes = _locked_scopes(account)
    confirmed = _confirmed(account, scopes, by, proof) if changing(scopes) else {}
    text = tokens.make(tokens.SERVICE)
    parts = tokens.parse(text, tokens.SERVICE)
    assert parts is not None
    token = ServiceToken.objects.create(
        account=account,
        public_id=parts.public_id,
        digest=parts.digest,
        created_by=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    reason = ngettext("Valid for %d day.", "Valid for %d days.", days) % days
    facts = {"token": str(token), **confirmed}
    _record("service_token.issued", account, by, reason=reason, **facts)
    return text


@transaction.atomic
def rotate_token(token: ServiceToken, *, by: User, proof: Proof | None = None) -> str:
    """Creates a token with the same lifetime; the old one expires within the hour. `proof`: as
    `issue_token` takes it. Raises AccountRefused."""
    ends = timezone.now() + OVERLAP
    days = round((token.expires_at - token.created_at) / timedelta(days=1))
    text = issue_token(token.account, by=by, days=min(MAX_DAYS, max(1, days)), proof=proof)
    if token.expires_at > ends:
        ServiceToken.objects.filter(pk=token.pk).update(expires_at=ends)
    reason = _("A new token takes its place; this one ends within the hour.")
    _record("service_token.rotated", token.account, by, reason=reason, token=str(token))
    return text


@transaction.atomic
def revoke_token(token: ServiceToken, *, by: By, reason: str = "") -> bool:
    """False if it was revoked before."""
    at = timezone.now()
    if not ServiceToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=at):
        return False
    _record("service_token.revoked", token.account, by, reason=reason, token=str(token))
    return True


def authenticate(text: str) -> ServiceBearer | None:
    """Asks the database each time: nothing is kept in memory that could open a door later."""
    shown = tokens.parse(text, tokens.SERVICE)
    if shown is None:
        return None
    found = ServiceToken.objects.valid().filter(public_id=shown.public_id)
    token = found.select_related("account__created_by", "created_by").first()
    digest = bytes(token.digest) if token else tokens.NOBODY
    if not tokens.is_token(text, shown, digest, tokens.SERVICE) or token is None:
        return None
    return ServiceBearer(token, _open_scopes(token))


def _open_scopes(token: ServiceToken) -> frozenset[str]:
    """Never more than who made the token, and has seen it, has at this moment."""
    return open_scopes(token.account, Backend().get_user(token.created_by_id))


def open_scopes(account: ServiceAccount, maker: User | None) -> frozenset[str]:
    """The scopes of a valid token that `maker` created, who opens no page themselves while they may
    not sign in (None) or have to set up a second factor."""
    if maker is None or maker.lacks_factor:
        return frozenset()
    return frozenset(scope for scope in account.scopes if maker.has_perm(scope))


@transaction.atomic
def note_used(token: ServiceToken, address: str) -> None:
    """When and where from, at most once a minute; another address than before is an entry."""
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - timedelta(minutes=1))
    due = ServiceToken.objects.filter(stale | ~Q(last_address=address), pk=token.pk)
    if due.update(last_used_at=now, last_address=address) and token.last_address != address:
        record(
            "service_token.address_seen",
            actor=token.account.actor,
            reason=made_by(token.account),
            token=str(token),
            address=address,
            before=token.last_address,
        )


def made_by(account: ServiceAccount) -> str:
    """The sentence that names, in each entry of its acts, who made the account."""
    return _("A service account created by %s.") % account.created_by.username


def _record(
    action: str, account: ServiceAccount, by: By, *, reason: str = "", **details: Any
) -> None:
    names = {"service_account": account.name, "made_by": account.created_by.username}
    record(action, actor=acting(by), reason=reason, **names, **details)
