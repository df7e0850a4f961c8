"""Permissions that hold for some servers, toolsets, agents and calls alone: by their tags.

One request is about one object, which its address names (config/targets.py). A role that is limited
to tags permits what it permits while that object bears one of them; a request about no object, or
about many, asks for permissions that hold everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

# Permission → the kind of object that it is about. All others hold everywhere or not at all.
SCOPABLE = {
    "registry.change_server": "server",
    "registry.operate_server": "server",
    "registry.change_tool": "server",
    "registry.change_toolset": "toolset",
    "accounts.change_agent": "agent",
    "accounts.change_agenttoken": "agent",
    "calls.cancel_call": "call",
    "calls.view_payload": "call",
    "calls.view_received": "call",
    "calls.erase_payload": "call",
}


@dataclass(frozen=True, slots=True)
class ScopeTarget:
    """The object of a request, with its tags; a call has those of its server, toolset and agent."""

    kind: str
    tags: Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class ScopedRole:
    """The part of a role that holds for some tags alone."""

    name: str
    permissions: frozenset[str]
    # Kind → tags; a kind without any does not limit.
    tags: Mapping[str, frozenset[str]]

    def permits(self, permission: str, target: ScopeTarget) -> bool:
        return (
            permission in self.permissions
            and SCOPABLE.get(permission) == target.kind
            and self.covers(target)
        )

    def covers(self, target: ScopeTarget) -> bool:
        """Every kind that limits the role and that the object has must have a tag in common."""
        limits = [kind for kind, tags in self.tags.items() if tags and kind in target.tags]
        return bool(limits) and all(self.tags[kind] & set(target.tags[kind]) for kind in limits)


def scoped_role(
    name: str,
    permissions: Iterable[str],
    server_tags: Iterable[str],
    toolset_tags: Iterable[str],
    agent_tags: Iterable[str],
) -> ScopedRole:
    tags = {"server": server_tags, "toolset": toolset_tags, "agent": agent_tags}
    limits = {kind: frozenset(some) for kind, some in tags.items()}
    return ScopedRole(name, frozenset(permissions), limits)


def permits(roles: Iterable[ScopedRole], permission: str, target: ScopeTarget) -> bool:
    return any(role.permits(permission, target) for role in roles)
