"""The body of a webhook's request: facts of one entry, never a call's arguments.

It is made of the entry alone, so that every attempt sends the same bytes: only an emergency stop
that covers a pending call is one of the time of sending. A statement's decision is added once it
is final.
docs/en/guides/notifications.md has the schema.
"""

from __future__ import annotations

from typing import Any

import orjson
from django.conf import settings
from django.urls import reverse

from audit.models import Entry
from calls import freezes
from calls.models import Call
from inspection.results import ResultRules, clean
from notifications import statement_decisions
from notifications.events import DELEGATIONS, PERSONAL, Event
from notifications.models import Delivery
from notifications.outcomes import DETACHED, NotNeeded
from notifications.recipients import ASKED

MASKS = ResultRules(secrets=True)
# Where people do something of it.
OF_CALL = {
    Event.APPROVAL_NEEDED: "approvals:detail",
    Event.APPROVAL_REMINDER: "approvals:detail",
    Event.APPROVAL_DECIDED: "approvals:detail",
    Event.APPROVAL_EXPIRED: "approvals:detail",
    Event.APPROVAL_WITHDRAWN: "approvals:detail",
    Event.BREAK_GLASS_USED: "approvals:detail",
    Event.OUTCOME_UNKNOWN: "calls:detail",
}
# Stands for a path, whose own query has to stay one.
NOWHERE = "-"
# The list of what an event is about.
OF_EVENT = {
    Event.LIMIT_REACHED: "policies:limits",
    Event.VERIFICATION_FAILED: "audit:list",
    Event.BACKUP_FAILED: "audit:list",
    Event.WORKLOAD: "approvals:workload",
}


def entry_of(delivery: Delivery) -> Entry:
    """The entry that it is about, with secrets masked in its reason: servers and people wrote it,
    and channels have other readers. Raises NotNeeded if its month was detached: only a message that
    was given up is that old."""
    entry = Entry.objects.filter(pk=delivery.entry_id).first()
    if entry is None:
        raise NotNeeded(DETACHED)
    entry.reason = _without_secrets(entry.reason)
    return entry


def _without_secrets(text: str) -> str:
    (masked,) = orjson.loads(clean(orjson.dumps([text]), MASKS).body)
    return str(masked)


def payload(delivery: Delivery) -> bytes:
    """Raises NotNeeded."""
    entry = entry_of(delivery)
    return orjson.dumps(
        {"type": delivery.event, "timestamp": entry.at, "data": _data(delivery, entry)},
        option=orjson.OPT_UTC_Z,
    )


def link(delivery: Delivery) -> str:
    return link_to(delivery, path(delivery))


def link_to(delivery: Delivery, there: str) -> str:
    """To this path of ours: for people by way of a page that notes who followed it, for programs
    at once."""
    if delivery.is_for_program:
        return settings.PUBLIC_URL + there
    noting = reverse("notifications:follow_message", args=[delivery.pk, NOWHERE])
    return settings.PUBLIC_URL + noting.removesuffix(NOWHERE) + there.removeprefix("/")


def path(delivery: Delivery) -> str:
    event = Event(delivery.event)
    if delivery.call_id and event in OF_CALL:
        return reverse(_page_of_call(delivery, event), args=[delivery.call_id])
    if event == Event.DEFINITION_REVIEW:
        return reverse("registry:review", args=[delivery.server])
    if delivery.server and event in (Event.SERVER_UNREACHABLE, Event.SERVER_REACHABLE):
        return reverse("registry:server", args=[delivery.server])
    if event in (Event.STOP_BEGAN, Event.STOP_ENDED):
        return reverse("approvals:freezes")
    if event in (Event.CALENDAR_FAILED, Event.CALENDAR_RECOVERED):
        return reverse("notifications:schedules")
    if event == Event.TOKEN_EXPIRING:
        return _tokens(Entry.objects.get(pk=delivery.entry_id))
    if event == Event.AGENT_UNUSUAL:
        agent = Entry.objects.get(pk=delivery.entry_id).agent
        return reverse("accounts:agent", args=[agent])
    if event in OF_EVENT:
        return reverse(OF_EVENT[event])
    if event == Event.ROLE_CHANGED:
        return reverse("accounts:people")
    if event in DELEGATIONS:
        return reverse("approvals:delegations")
    if event == Event.NEW_DEVICE:
        return reverse("accounts:sessions")
    if event in PERSONAL:
        return reverse("accounts:profile")
    return reverse("notifications:webhooks")


def _page_of_call(delivery: Delivery, event: Event) -> str:
    """An agent's owner is told what became of its call, and may not see cards of approvals."""
    reader = delivery.reader
    if reader is None or reader.has_perm("approvals.view_approval") or reader.scoped_roles:
        return OF_CALL[event]
    return "calls:detail"


def _tokens(entry: Entry) -> str:
    """The page of the tokens of whatever this one is of."""
    details = entry.details or {}
    match details:
        case {"kind": "agent", "of": str(name)}:
            return reverse("accounts:agent", args=[name])
        case {"kind": "service", "of": str(name)}:
            return reverse("accounts:service_account", args=[name])
    return reverse("accounts:provisioning")


def _data(delivery: Delivery, entry: Entry) -> dict[str, Any]:
    details = entry.details or {}
    facts = {
        "entry": entry.pk,
        "call": str(entry.call_id) if entry.call_id else None,
        "fingerprint": _fingerprint(entry),
        "state": entry.to_state,
        "decision": statement_decisions.decision(delivery),
        "agent": entry.agent,
        "user": entry.person,
        "server": entry.server,
        "tool": entry.tool,
        "person": details.get("person"),
        "role": details.get("role"),
        "groups": details.get("after") if entry.action == "person.groups_set" else None,
        "schedule": details.get("schedule"),
        "token": details.get("token"),
        "expires_at": details.get("expires_at"),
        "limit": details.get("limit"),
        "emergency_stop": details.get("freeze") or _stop(delivery),
        # Of an edit whose agent is not told of it.
        "reason": "" if details.get("private") else entry.reason,
        "actor": {"kind": entry.actor_kind, "name": entry.actor},
    }
    return {**{name: value for name, value in facts.items() if value}, "url": link(delivery)}


def _stop(delivery: Delivery) -> int | None:
    """The emergency stop during which the pending call cannot be approved."""
    if not delivery.call_id or delivery.event not in ASKED:
        return None
    call = Call.objects.filter(pk=delivery.call_id).first()
    return freezes.oldest_stop(call) if call else None


def _fingerprint(entry: Entry) -> str:
    """The fingerprint of what was to be decided on; an entry that does not say it came after the
    decision, when nothing is edited any more."""
    asked = (entry.details or {}).get("call_digest")
    if asked or not entry.call_id:
        return str(asked or "")[:8]
    call = Call.objects.filter(pk=entry.call_id).only("call_digest").first()
    return call.fingerprint if call else ""
