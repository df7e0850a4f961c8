"""Rows as the REST API shows them to service accounts: never arguments, results or secrets."""

from __future__ import annotations

from typing import Any

from accounts.models import Agent
from approvals.models import Approval
from audit.models import Entry
from audit.services import without_received
from calls.models import Call
from gateway.submit import messages
from registry.models import Server, Tool, Toolset


def server(row: Server) -> dict[str, Any]:
    return {
        "name": row.slug,
        "title": row.title,
        "transport": row.transport,
        "enabled": row.enabled,
        "health": row.health,
        "health_since": row.health_since,
        "revision": row.revision,
        "discovered_at": row.discovered_at,
    }


def tool(row: Tool) -> dict[str, Any]:
    return {
        "name": row.exposed_name,
        "server": row.server.slug,
        "upstream_name": row.name,
        "state": row.state,
    }


def toolset(row: Toolset) -> dict[str, Any]:
    return {
        "name": row.slug,
        "title": row.title,
        "servers": sorted(one.slug for one in row.servers.all()),
        "agents": sorted(one.name for one in row.agents.all()),
    }


def agent(row: Agent) -> dict[str, Any]:
    return {
        "name": row.name,
        "owner": row.owner.username,
        "enabled": row.enabled,
        "created_at": row.created_at,
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
