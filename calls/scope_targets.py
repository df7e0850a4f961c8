"""Objects for which roles that are limited to tags permit something, with their tags."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from accounts.models import Agent
from accounts.scopes import ScopeTarget
from calls.models import Call
from registry.models import Server, Tool, Toolset


def server_target(slug: str) -> ScopeTarget | None:
    return _target("server", server=_tags(Server.objects.filter(slug=slug)))


def tool_target(name: Any) -> ScopeTarget | None:
    tools = Tool.objects.filter(exposed_name=getattr(name, "exposed_name", name))
    return _target("server", server=tools.values_list("server__tags", flat=True).first())


def toolset_target(slug: str) -> ScopeTarget | None:
    return _target("toolset", toolset=_tags(Toolset.objects.filter(slug=slug)))


def agent_target(name: str) -> ScopeTarget | None:
    return _target("agent", agent=_tags(Agent.objects.filter(name=name)))


def call_target(call_id: Any) -> ScopeTarget | None:
    """A call of an unknown tool has no server: no role that is limited to servers covers it."""
    row = Call.objects.filter(pk=call_id).values("toolset", "server__tags", "agent__tags").first()
    if row is None:
        return None
    toolset = _tags(Toolset.objects.filter(slug=row["toolset"]))
    server, agent = row["server__tags"] or (), row["agent__tags"] or ()
    return _target("call", server=server, toolset=toolset or (), agent=agent)


def _target(kind: str, **tags: Collection[str] | None) -> ScopeTarget | None:
    """None where there is no such object."""
    found = {name: some for name, some in tags.items() if some is not None}
    return ScopeTarget(kind, found) if found else None


def _tags(rows: Any) -> list[str] | None:
    found: list[str] | None = rows.values_list("tags", flat=True).first()
    return found
