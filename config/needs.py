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


def list_needs(
    facts: InstallationFacts, mine: Decidable, waiting: int, person: User
) -> Iterator[Need]:
    """Only of what this person may see, the most urgent first. `waiting`: all pending calls."""
    if facts.stops:
        said = ngettext("{n} emergency stop in force", "{n} emergency stops in force", facts.stops)
        yield _need("disabled", said, facts.stops, "approvals:freezes")
    if facts.glass_broken and person.has_perm("approvals.view_approval"):
        many = facts.glass_broken
        said = ngettext(
            "{n} use of break-glass to review", "{n} uses of break-glass to review", many
        )
        yield _need("error", said, many, "approvals:break_glass")
    if mine.count:
        yield Need("queue", _say_pending(mine, waiting), reverse("approvals:queue"), mine.oldest)
    if facts.unresolved and person.has_perm("calls.cancel_call"):
        said = ngettext("{n} unresolved outcome", "{n} unresolved outcomes", facts.unresolved)
        yield _need("unknown", said, facts.unresolved, "calls:unknown")
    if facts.unusual and person.has_perm("accounts.view_agent"):
        said = ngettext("{n} agent with unusual use", "{n} agents with unusual use", facts.unusual)
        yield _need("warning", said, facts.unusual, "policies:unusual")
    yield from _of_servers(facts, person)
    yield from _of_notifications(facts, person)


def _say_pending(mine: Decidable, waiting: int) -> str:
    """Beside the number of all, which the badge has, where this person may not decide every one."""
    if mine.is_least or mine.count >= waiting:
        said = ngettext("{n} call to approve or deny", "{n} calls to approve or deny", mine.count)
        return said.format(n=f"{mine.count}+" if mine.is_least else mine.count)
    said = ngettext(
        "{n} of {waiting} pending calls is for you to decide",
        "{n} of {waiting} pending calls are for you to decide",
        mine.count,
    )
    return said.format(n=mine.count, waiting=waiting)


def _of_servers(facts: InstallationFacts, person: User) -> Iterator[Need]:
    if facts.unreachable and person.has_perm("registry.view_server"):
        said = ngettext("{n} server unreachable", "{n} servers unreachable", facts.unreachable)
        yield _need("down", said, facts.unreachable, "registry:servers")
    if facts.to_review and person.has_perm("registry.operate_server"):
        said = ngettext("{n} definition to review", "{n} definitions to review", facts.to_review)
        unpublished = "?state=unpublished"
        yield _need("tool", said, facts.to_review, "registry:catalogue", query=unpublished)
    yield from _of_cases(facts, person)


def _of_cases(facts: InstallationFacts, person: User) -> Iterator[Need]:
    if facts.failed_cases and person.has_perm("registry.operate_server"):
        said = ngettext("{n} saved case failed", "{n} saved cases failed", facts.failed_cases)
        troubled = "?state=troubled"
        yield _need("error", said, facts.failed_cases, "gateway:cases", query=troubled)
    if facts.stopped_schedules and person.has_perm("registry.operate_server"):
        many = facts.stopped_schedules
        said = ngettext("{n} schedule of cases stopped", "{n} schedules of cases stopped", many)
        yield _need("disabled", said, many, "gateway:cases")


def _of_notifications(facts: InstallationFacts, person: User) -> Iterator[Need]:
    if facts.undelivered and person.has_perm("notifications.change_webhook"):
        many = facts.undelivered
        said = ngettext("{n} notification given up", "{n} notifications given up", many)
        yield _need("bell", said, many, "notifications:webhooks")


def _need(icon: str, said: str, count: int, address: str, *, query: str = "") -> Need:
    n = f"{count}+" if count >= COUNTED else str(count)
    return Need(icon, said.format(n=n), reverse(address) + query)
