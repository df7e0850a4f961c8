"""Rows as the API shows them to service accounts: never arguments, results or secrets."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, AgentToken, User
from approvals.models import Approval, Grant
from audit.models import Entry, Export
from audit.services import without_received
from calls.models import Call, Freeze
from calls.views.range_figures import OUTCOMES, OutcomeCounts, RangeFigures, TimeStep, TopCaller
from calls.views.usage_figures import Usage
from core.english import english
from gateway.submit import messages
from notifications.models import CHANNELS, Delivery, OnCallOverride, OnCallSchedule, Webhook
from notifications.on_call import person_on_call
from notifications.policy_section import DAY_NAMES
from policies.as_code.rows import plain_limit, plain_rule
from policies.models import Limit, Rule
from registry.credentials.clients import redirect_uri
from registry.models import (
    Definition,
    Discovery,
    Publication,
    Server,
    ServerClient,
    Tool,
    Toolset,
)
from registry.publishing.review import Review
from registry.schemas import differences
from registry.schemas.differences import DefinitionChange
from registry.views.vouching import Vouching

TOPS = ("tool", "agent", "server")


def server(row: Server) -> dict[str, Any]:
    return {
        "name": row.slug,
        "title": row.title,
        "transport": row.transport,
        "address": row.address,
        "owner": row.owner.username,
        "enabled": row.enabled,
        "relays": row.relays,
        "wanted_revision": row.wanted_revision,
        "health": row.health,
        "health_since": row.health_since,
        "revision": row.revision,
        "discovered_at": row.discovered_at,
    }


def server_sign_in(row: Server) -> dict[str, Any]:
    client = ServerClient.objects.filter(server=row).first() or ServerClient(server=row)
    return {
        "mode": row.sign_in,
        "client_id": client.client_id,
        "registration": client.registration,
        "has_client_secret": client.sealed_secret is not None,
        "issuer": client.issuer,
        "scopes": client.scopes,
        "header": client.header,
        "redirect_uri": redirect_uri(row.pk),
    }


def vouching(found: Vouching) -> dict[str, Any]:
    return {
        "origin": _origin(found) if found.origin else None,
        "review": _last_review(found.review) if found.review else None,
        "signature": _signature(found) if found.signature else None,
    }


def _origin(found: Vouching) -> dict[str, Any]:
    row: Any = found.origin
    return {
        "name": row.name,
        "version": row.version,
        "digest": row.digest,
        "registry": row.registry or None,
        "is_namespace_checked": found.is_official,
        "fetched_at": row.fetched_at,
        "published_at": row.published_at or None,
        "status": row.status or None,
        "package": row.package.get("identifier"),
        "package_version": row.package.get("version"),
        "pinned_digest": found.digest or None,
        "names_package": found.names_package,
        "is_moved": row.is_moved,
    }


def _last_review(row: Publication) -> dict[str, Any]:
    return {"at": row.at, "by": row.person.username if row.person else None}


def _signature(found: Vouching) -> dict[str, Any]:
    known: Any = found.signature
    return {
        "identity": known["identity"],
        "issuer": known["issuer"],
        "is_publishers": found.origin is not None and found.origin.is_signed_by_publisher,
        "about": "package" if found.is_package_signed else "server.json",
        "digest": known["digest"],
        "predicate": known["predicate"] or None,
        "at": known["at"],
        "is_log_time": known["is_log_time"],
        "log_index": known["log_index"],
    }


def discovery(row: Discovery) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": row.at,
        "succeeded": row.succeeded,
        "changed": row.moved,
        "summary": row.summary,
    }


def tool(row: Tool) -> dict[str, Any]:
    return {
        "name": row.exposed_name,
        "server": row.server.slug,
        "upstream_name": row.name,
        "state": row.state,
    }


def definition(row: Definition) -> dict[str, Any]:
    return {
        "version": row.version,
        "digest": row.digest,
        "first_seen_at": row.first_seen_at,
        "risk": row.findings.score,
        "findings": [one.said for one in row.findings.findings],
        "definition": row.content,
    }


def changes(before: Definition | None, after: Definition) -> list[dict[str, Any]]:
    found = differences.changes(before.content, after.content) if before else []
    return [_change(one) for one in found]


def _change(one: DefinitionChange) -> dict[str, Any]:
    said = {"what": english(one.what), "name": one.name}
    return {**said, "kind": one.kind, "before": one.before, "after": one.after}


def review(one: Review) -> dict[str, Any]:
    """`digest`: of the difference, by which it is published."""
    return {
        "kind": "tool" if one.is_tool else one.of.kind,  # type: ignore[union-attr]
        "name": one.name,
        "digest": one.digest,
        "published_version": one.before.version if one.before else None,
        "version": one.after.version,
        "is_red": one.scan.is_red,
        "findings": [found.said for found in one.scan.findings],
        "marks": [{"said": mark.said, "quote": mark.quote} for mark in one.marks],
        "problems": one.problems,
        "changes": [_change(change) for change in one.changes],
        "definition": one.after.content,
    }


def toolset(row: Toolset) -> dict[str, Any]:
    return {
        "name": row.slug,
        "title": row.title,
        "servers": sorted(one.slug for one in row.servers.all()),
        "tools": sorted(one.exposed_name for one in row.tools.all()),
        "agents": sorted(one.name for one in row.agents.all()),
        "separator": row.separator,
        "search_mode": row.search_mode,
        "own_tools": row.own_tools,
        "hold_seconds": row.hold_s,
        "agent_sign_in": row.agent_sign_in,
        "registry_readers": row.registry_readers,
    }


def agent(row: Agent) -> dict[str, Any]:
    return {
        "name": row.name,
        "owner": row.owner.username,
        "enabled": row.enabled,
        "hold_seconds": row.hold_s,
        "requires_dpop": row.requires_dpop,
        "team": row.team.name if row.team else None,
        "created_at": row.created_at,
    }


def token(row: AgentToken) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "created_at": row.created_at,
        "created_by": row.created_by.username if row.created_by else None,
        "expires_at": row.expires_at,
        "revoked_at": row.revoked_at,
        "last_used_at": row.last_used_at,
        "last_address": row.last_address or None,
        "toolsets": row.toolsets,
        "reads_only": row.reads_only,
    }


def rule(row: Rule) -> dict[str, Any]:
    """All that the console's form has, and its place in the list."""
    return {"id": row.pk, **plain_rule(row), "position": row.position}


def limit(row: Limit) -> dict[str, Any]:
    return {"id": row.pk, **plain_limit(row)}


def emergency_stop(row: Freeze) -> dict[str, Any]:
    return {
        "id": row.pk,
        "agent": row.agent.name if row.agent else None,
        "server": row.server.slug if row.server else None,
        "reason": row.reason,
        "began_by": row.by.username,
        "began_by_account": row.account.name if row.account else None,
        "began_at": row.began_at,
        "ended_by": row.ended_by.username if row.ended_by else None,
        "ended_by_account": row.ended_account.name if row.ended_account else None,
        "ended_at": row.ended_at,
        "ended_why": row.ended_why,
    }


def standing_approval(row: Grant) -> dict[str, Any]:
    """Without the arguments that it covers."""
    return {
        "id": row.pk,
        "agent": row.agent.name,
        "tool": row.tool.exposed_name,
        "owner": row.owner.username,
        "state": row.state,
        "uses": row.uses,
        "max_uses": row.max_uses,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "revoked_at": row.revoked_at,
        "note": row.note,
    }


def export(row: Export) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": row.at,
        "format": row.format,
        "filters": row.query,
        "file": reverse("api:export_file", args=[row.pk]),
        "state": row.shown_state,
        "percent": row.percent,
        "size": row.bytes,
        "fault": row.fault,
        "expires_at": row.expires_at,
        "rows": row.rows,
        "finished_at": row.finished_at,
        "digest": row.digest,
    }


def call(row: Call) -> dict[str, Any]:
    return {
        "id": row.pk,
        "agent": row.agent.name,
        "person": row.person.username,
        "tool": row.tool_name,
        "toolset": row.toolset,
        "state": row.state,
        "effect": row.effect,
        "reason": row.reason,
        "executed": row.executed or None,
        "outcome": row.outcome,
        "asked_at": row.asked_at,
        "finished_at": row.finished_at,
        "page": messages.page_of(row.pk),
    }


def approval(row: Approval) -> dict[str, Any]:
    return {"call": call(row.call), "asked_at": row.asked_at, "decide_by": row.decide_by}


def entry(row: Entry) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": row.at,
        "action": row.action,
        "actor_kind": row.actor_kind,
        "actor": row.actor,
        "call": row.call_id,
        "from_state": row.from_state,
        "to_state": row.to_state,
        "agent": row.agent,
        "person": row.person,
        "server": row.server,
        "tool": row.tool,
        "reason": row.reason,
        "details": without_received(row.details),
    }


def user(row: Any) -> dict[str, Any]:
    """A user with `has_factor` (users.py)."""
    return {
        "name": row.username,
        "display_name": row.get_full_name(),
        "enabled": row.is_active,
        "groups": [group.name for group in row.groups.all()],
        "has_second_factor": row.has_factor,
        "invited_by": row.invited_by.username if row.invited_by else None,
        "joined_at": row.date_joined,
        "last_signed_in_at": row.last_login,
    }


def webhook(row: Webhook) -> dict[str, Any]:
    """`url` of a chat: its host and its last characters."""
    return {
        "id": row.pk,
        "name": row.name,
        "format": row.format,
        "url": row.url,
        "language": row.language,
        "events": row.events,
        "enabled": row.enabled,
        "created_at": row.created_at,
        "created_by": row.created_by.username if row.created_by else None,
    }


def delivery(row: Delivery) -> dict[str, Any]:
    return {
        "id": row.pk,
        "event": row.event,
        "call": row.call_id,
        "state": row.state,
        "attempts": row.attempts,
        "created_at": row.created_at,
        "ended_at": row.ended_at,
        "error": row.error,
    }


def failed_receiver(one: dict[str, Any]) -> dict[str, Any]:
    is_channel = one["receiver"] in CHANNELS
    return {
        "channel": one["receiver"] if is_channel else Delivery.Channel.WEBHOOK.value,
        "webhook": None if is_channel else one["receiver"],
        "count": one["n"],
    }


def schedule(row: OnCallSchedule) -> dict[str, Any]:
    """`calendar_url`: its host and its last characters."""
    calendar = getattr(row, "calendar", None)
    person = User.objects.filter(pk=person_on_call(row, timezone.now()) or 0).first()
    return {
        "id": row.pk,
        "name": row.name,
        "time_zone": row.time_zone,
        **_rotation(row, is_taken=not calendar),
        "calendar_url": calendar.url if calendar else None,
        "calendar_read_at": calendar.read_at if calendar else None,
        "calendar_error": calendar.error if calendar else "",
        "on_call": person.username if person else None,
    }


def _rotation(row: OnCallSchedule, *, is_taken: bool) -> dict[str, Any]:
    return {
        "handover_day": DAY_NAMES[row.handover_weekday] if is_taken else None,
        "handover_at": f"{row.handover_at:%H:%M}" if is_taken else None,
        "starts_on": row.starts_on.isoformat() if is_taken else None,
        "people": [one.person.username for one in row.members.all()],
    }


def override(row: OnCallOverride) -> dict[str, Any]:
    return {
        "id": row.pk,
        "person": row.person.username,
        "begins_at": row.begins_at,
        "ends_at": row.ends_at,
    }


def usage(name: str, found: RangeFigures, tops: dict[str, list[TopCaller]]) -> dict[str, Any]:
    """`tops`: by kind, empty for figures of one agent, server or rule."""
    return {
        "range": name,
        "calls": found.total.calls,
        "calls_before": found.before.calls,
        "outcomes": _outcomes(found.total),
        "error_percent": found.total.error_percent,
        "p50": found.durations.p50,
        "p95": found.durations.p95,
        "is_sampled": found.is_sampled,
        "steps": [_step(step) for step in found.steps],
        **{f"{kind}s": [_top(one) for one in tops.get(kind, ())] for kind in TOPS},
    }


def tool_usage(row: Tool, found: Usage) -> dict[str, Any]:
    return {
        "tool": row.exposed_name,
        "calls": found.calls,
        "error_percent": found.wrong_percent,
        "p50": found.p50,
        "p95": found.p95,
        "days": [
            {
                "day": one.day,
                "calls": one.calls,
                "error_share": one.error_share,
                "p50": one.p50,
                "p95": one.p95,
            }
            for one in found.days
        ],
        "callers": [{"agent": name, "calls": calls} for name, calls in found.callers],
    }


def _outcomes(counts: OutcomeCounts) -> dict[str, int]:
    return {name: counts.by_outcome.get(name, 0) for name in OUTCOMES}


def _step(step: TimeStep) -> dict[str, Any]:
    return {
        "since": step.since,
        "until": step.until,
        "calls": step.counts.calls,
        "outcomes": _outcomes(step.counts),
        "p50": step.durations.p50,
        "p95": step.durations.p95,
    }


def _top(one: TopCaller) -> dict[str, Any]:
    shown = {"name": one.name, "calls": one.calls}
    return {**shown, "error_percent": one.error_percent, "p95": one.p95}
