"""Accounts that may be of one person, who would then have two votes: they share an address of mail,
or an id at identity providers. A sign, and no proof: nothing follows from it by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from accounts.models import Identity, ScimUser, User
from accounts.oidc.providers import usable_providers
from accounts.permission_sources import people_with_rights, person_of
from notifications.models import MailRecipient
from policies.thresholds import DECIDE

SHOWN = 100
# Shorter ones, such as a running number, are alike at two providers by chance.
TELLING_LENGTH = 8


class SharedKind(StrEnum):
    MAIL = "mail"
    ID = "id"


class Shared(NamedTuple):
    """A value that accounts may have in common. `issuer`: empty where the value is one anywhere."""

    kind: SharedKind
    value: str
    issuer: str = ""


class AccountTrace(NamedTuple):
    shared: Shared
    person_id: int
    # Who says so, in words for people.
    source: str


@dataclass(frozen=True, slots=True)
class LikelyDouble:
    """Active accounts with something in common, each with the sources."""

    shared: Shared
    accounts: list[tuple[User, list[str]]]

    @property
    def voters(self) -> int:
        return sum(person.has_perm(DECIDE) for person, _sources in self.accounts)


def likely_doubles() -> list[LikelyDouble]:
    """Those with two voters first."""
    found: dict[Shared, dict[int, list[str]]] = defaultdict(dict)
    for trace in _traces():
        found[trace.shared].setdefault(trace.person_id, []).append(trace.source)
    several = {shared: people for shared, people in found.items() if len(people) > 1}
    ids = {pk for people in several.values() for pk in people}
    rows = people_with_rights().filter(pk__in=ids, is_active=True).order_by("username")
    active = {row.pk: person_of(row) for row in rows}
    doubles = [
        LikelyDouble(shared, [(active[pk], people[pk]) for pk in active if pk in people])
        for shared, people in several.items()
    ]
    known = [one for one in doubles if len(one.accounts) > 1]
    return sorted(known, key=lambda one: (-one.voters, one.shared))[:SHOWN]


def _traces() -> Iterator[AccountTrace]:
    labels = {one.issuer: one.label for one in usable_providers()}
    recipients = MailRecipient.objects.filter(confirmed_at__isnull=False)
    for person, address in recipients.values_list("person_id", "address"):
        yield AccountTrace(_mail(address), person, _("confirmed for notifications"))
    for user in ScimUser.objects.filter(deleted_at=None):
        source = _("provisioned by %s") % labels.get(user.issuer, user.issuer)
        for address in _addresses(user):
            yield AccountTrace(_mail(address), user.person_id, source)
        if user.external_id:
            yield AccountTrace(_id(user.external_id, user.issuer), user.person_id, source)
    for identity in Identity.objects.all():
        source = _("account at %s") % labels.get(identity.issuer, identity.issuer)
        if "@" in identity.label:
            yield AccountTrace(_mail(identity.label), identity.person_id, source)
        yield AccountTrace(_id(identity.subject, identity.issuer), identity.person_id, source)


def _addresses(user: ScimUser) -> set[str]:
    emails: list[dict[str, Any]] = user.attributes.get("emails") or []
    found = [user.user_name, *(str(one.get("value", "")) for one in emails)]
    return {text.strip().casefold() for text in found if "@" in text}


def _mail(address: str) -> Shared:
    return Shared(SharedKind.MAIL, address.strip().casefold())


def _id(value: str, issuer: str) -> Shared:
    return Shared(SharedKind.ID, value, "" if len(value) >= TELLING_LENGTH else issuer)
