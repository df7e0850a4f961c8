"""Things that need a person now: a line for each kind, with the page where it is done."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from django.urls import reverse
from django.utils.translation import ngettext

from accounts.models import User
from approvals.pending import Decidable
from config.checklist import COUNTED, InstallationFacts


class Need(NamedTuple):
    icon: str
    sentence: str
    address: str
    since: datetime | None = None


def list_needs(facts: InstallationFacts, mine: Decidable, person: User) -> Iterator[Need]:
    """Only of what this person may see, the most urgent first."""
    if facts.stops:
        said = ngettext("{n} emergency stop in force", "{n} emergency stops in force", facts.stops)
        yield _need("disabled", said, facts.stops, "approvals:freezes")
    if mine.count:
        said = ngettext("{n} call to approve or deny", "{n} calls to approve or deny", mine.count)
        n = f"{mine.count}+" if mine.is_least else str(mine.count)
        yield Need("queue", said.format(n=n), reverse("approvals:queue"), mine.oldest)
    if facts.unresolved and person.has_perm("calls.cancel_call"):
        said = ngettext("{n} unresolved outcome", "{n} unresolved outcomes", facts.unresolved)
        yield _need("unknown", said, facts.unresolved, "calls:unknown")
    yield from _of_servers(facts, person)
    yield from _of_notifications(facts, person)


def _of_servers(facts: InstallationFacts, person: User) -> Iterator[Need]:
    if facts.unreachable and person.has_perm("registry.view_server"):
        said = ngettext("{n} server unreachable", "{n} servers unreachable", facts.unreachable)
        yield _need("down", said, facts.unreachable, "registry:servers")
    if facts.to_review and person.has_perm("registry.operate_server"):
        said = ngettext("{n} definition to review", "{n} definitions to review", facts.to_review)
        unpublished = "?state=unpublished"
        yield _need("tool", said, facts.to_review, "registry:catalogue", query=unpublished)


def _of_notifications(facts: InstallationFacts, person: User) -> Iterator[Need]:
    if facts.undelivered and person.has_perm("notifications.change_webhook"):
        many = facts.undelivered
        said = ngettext("{n} notification given up", "{n} notifications given up", many)
        yield _need("bell", said, many, "notifications:webhooks")


def _need(icon: str, said: str, count: int, address: str, *, query: str = "") -> Need:
    n = f"{count}+" if count >= COUNTED else str(count)
    return Need(icon, said.format(n=n), reverse(address) + query)
