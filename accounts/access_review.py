"""The access review: who has what access, since when, given by whom and last used; signed off by
an entry with the digest of it."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Max

from accounts.actors import COMMAND_LINE, AccountRefused
from accounts.models import Agent, AgentToken, CustomRole, ServiceAccount, UsedName, User
from audit.exporting import csv_text, defused
from audit.names import entries_of
from audit.services import record
from core.english import gettext as _

PERSON, SERVICE_ACCOUNT, AGENT = "person", "service_account", "agent"
SUPERUSER = "superuser"
# Of the CSV file; the digest is of all but the last.
COLUMNS = (
    *("kind", "name", "state", "access", "limited_to", "permissions", "since", "given_by"),
    "last_used",
)
GIVING = (
    *("person.created", "person.promoted", "person.groups_set", "role.given"),
    *("service_account.created", "service_account.scopes_set"),
)


class AccessOrigin(NamedTuple):
    """When access was given, and by whom; empty where no entry says so."""

    since: datetime | None = None
    given_by: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """A role, a permission or, of an agent, its owner."""

    name: str
    origin: AccessOrigin
    permissions: tuple[str, ...] = ()
    # Tags by kind, as a custom role is limited to them.
    limited_to: str = ""
    role_id: int | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    kind: str
    pk: int
    name: str
    is_active: bool
    last_used: datetime | None
    access: list[Access] = field(default_factory=list)


class RoleAccess(NamedTuple):
    permissions: tuple[str, ...]
    limited_to: str
    # Of a custom role, which has a page.
    role_id: int | None


@dataclass(frozen=True, slots=True)
class AccessReport:
    holders: list[Holder]

    def of(self, kind: str) -> list[Holder]:
        return [holder for holder in self.holders if holder.kind == kind]

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(holder.kind for holder in self.holders))

    @property
    def csv(self) -> str:
        return "\ufeff" + csv_text([list(COLUMNS), *self._rows()])

    @property
    def digest(self) -> str:
        """SHA-256 of the CSV file without its last column, and without the mark before it: what
        was last used changes every minute, and gives nobody anything."""
        rows = [row[:-1] for row in ([*COLUMNS], *self._rows())]
        return hashlib.sha256(csv_text(rows).encode()).hexdigest()

    def _rows(self) -> Iterator[list[str]]:
        for holder in self.holders:
            for access in holder.access or [Access("", AccessOrigin())]:
                yield defused(_row(holder, access))


# By kind, holder (a user's id, a service account's name) and access.
Origins = Mapping[tuple[str, int | str, str], AccessOrigin]


def report() -> AccessReport:
    """All of it, by a number of queries that does not grow."""
    origins = _origins()
    people, accounts = _people(origins), _service_accounts(origins)
    return AccessReport([*people, *accounts, *_agents()])


@transaction.atomic
def sign_off(seen_digest: str, *, reason: str, by: User) -> None:
    """Raises AccountRefused, also where the access is another than `by` has seen."""
    if not reason:
        raise AccountRefused(_("Give a reason."))
    now = report()
    if now.digest != seen_digest:
        raise AccountRefused(_("Access changed since you opened this page. Review it again."))
    facts = {"sha256": now.digest, "holders": now.counts}
    record("access_review.signed", actor=by.actor, reason=reason, **facts)


def _people(origins: Origins) -> Iterator[Holder]:
    terms = _role_terms()
    people = User.objects.prefetch_related("groups", "user_permissions__content_type")
    for person in people.order_by("username"):
        names = sorted(group.name for group in person.groups.all())
        access = [
            Access(name, origins[PERSON, person.pk, name], *terms.get(name, ((), "", None)))
            for name in names
        ]
        own = [
            f"{one.content_type.app_label}.{one.codename}" for one in person.user_permissions.all()
        ]
        access += [Access(name, AccessOrigin(), (name,)) for name in sorted(own)]
        if person.is_superuser:
            access.append(Access(SUPERUSER, AccessOrigin()))
        yield Holder(
            PERSON, person.pk, person.username, person.is_active, person.last_login, access
        )


def _service_accounts(origins: Origins) -> Iterator[Holder]:
    used = Max("tokens__last_used_at")
    for one in ServiceAccount.objects.annotate(last_used=used).order_by("name"):
        access = [
            Access(scope, origins[SERVICE_ACCOUNT, one.name, scope], (scope,))
            for scope in one.scopes
        ]
        yield Holder(SERVICE_ACCOUNT, one.pk, one.name, one.enabled, one.last_used, access)


def _agents() -> Iterator[Holder]:
    used = dict(AgentToken.objects.order_by().values_list("agent").annotate(Max("last_used_at")))
    for one in Agent.objects.select_related("owner", "created_by").order_by("name"):
        by = one.created_by.username if one.created_by else COMMAND_LINE.name
        access = [Access(one.owner.username, AccessOrigin(one.created_at, by))]
        yield Holder(AGENT, one.pk, one.name, one.enabled, used.get(one.pk), access)


def _role_terms() -> dict[str, RoleAccess]:
    found: dict[str, set[str]] = defaultdict(set)
    rows = Group.objects.values_list(
        "name", "permissions__content_type__app_label", "permissions__codename"
    )
    for name, app, codename in rows:
        if codename:
            found[name].add(f"{app}.{codename}")
    own = {str(role): role for role in CustomRole.objects.select_related("group")}
    ids = {name: role.pk for name, role in own.items()}
    for name, role in own.items():
        found[name].update(role.scoped_permissions)
    return {
        name: RoleAccess(tuple(sorted(found[name])), _limits(own.get(name)), ids.get(name))
        for name in found
    }


def _limits(role: CustomRole | None) -> str:
    if role is None:
        return ""
    kinds = {"server": role.server_tags, "toolset": role.toolset_tags, "agent": role.agent_tags}
    return " ".join(f"{kind}:{tag}" for kind, tags in kinds.items() for tag in tags)


def _origins() -> Origins:
    """The last entry that gave it decides."""
    people = dict(UsedName.objects.values_list("name", "person_id"))
    found: dict[tuple[str, int | str, str], AccessOrigin] = defaultdict(AccessOrigin)
    entries = entries_of(GIVING).values_list("action", "details", "at", "actor")
    for action, details, at, actor in entries.iterator():
        kind, holder = PERSON, people.get(details.get("person", ""), "")
        if account := details.get("service_account"):
            kind, holder = SERVICE_ACCOUNT, account
        asked_by = details.get("asked_by")
        by = f"{asked_by}, {actor}" if asked_by and asked_by != actor else actor
        for name in _names_given(action, details):
            found[kind, holder, name] = AccessOrigin(at, by)
    return found


def _names_given(action: str, details: Mapping[str, Any]) -> Collection[str]:
    """Names of what the entry gave; nothing where its details were forgotten."""
    match action:
        case "role.given":
            return {details.get("role", "")}
        case "service_account.created":
            return set(details.get("scopes", ()))
        case "person.created" | "person.promoted":
            return set(details.get("roles", ()))
        case _:
            return set(details.get("after", ())) - set(details.get("before", ()))


def _row(holder: Holder, access: Access) -> dict[str, str]:
    """Times in UTC."""
    values = (
        *(holder.kind, holder.name, "active" if holder.is_active else "disabled"),
        *(access.name, access.limited_to, " ".join(access.permissions)),
        *(_time(access.origin.since), access.origin.given_by, _time(holder.last_used)),
    )
    return dict(zip(COLUMNS, values, strict=True))


def _time(at: datetime | None) -> str:
    return at.isoformat(timespec="seconds") if at else ""
