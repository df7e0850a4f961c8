"""Rows as the API shows them to service accounts: never arguments, results or secrets."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from accounts.models import Agent, AgentToken
from approvals.models import Approval, Grant
from audit.models import Entry, Export
from audit.services import without_received
from calls.models import Call, Freeze
from core.english import english
from gateway.submit import messages
from policies.as_code.rows import plain_limit, plain_rule
from policies.models import Limit, Rule
from registry.models import Definition, Discovery, Server, Tool, Toolset
from registry.publishing.review import Review
from registry.schemas import differences
from registry.schemas.differences import DefinitionChange


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
