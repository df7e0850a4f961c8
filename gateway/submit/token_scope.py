"""The limits of tokens to some toolsets, to read-only tools, and to where users sign in agents."""

from __future__ import annotations

from dataclasses import replace

from accounts.tokens import Bearer
from core.english import gettext as _
from registry.publishing.agent_names import ToolsByName
from registry.publishing.published_tools import PublishedTool, PublishedToolset

NOT_FOR_TOOLSET = _("This token is limited to other toolsets.")
NOT_READ_ONLY = _(
    "This token is limited to read-only tools, and this tool is not declared read-only."
)


def why_outside(bearer: Bearer, toolset: PublishedToolset, tool: PublishedTool | None) -> str:
    """Why the token does not open this tool; empty if it does, or if there is no such tool."""
    if not bearer.opens(toolset.slug):
        return NOT_FOR_TOOLSET
    return NOT_READ_ONLY if bearer.reads_only and tool and not tool.only_reads else ""


def is_switched_off(toolset: PublishedToolset, bearer: Bearer) -> bool:
    """Whether a user's sign-in is behind the access token, and no workload or other provider, and
    users no longer sign in agents at its toolset."""
    grant = bearer.grant.signed_in if bearer.grant else None
    return grant is not None and bool(grant.resource) and not toolset.agent_sign_in


def narrow(bearer: Bearer, toolset: PublishedToolset) -> PublishedToolset:
    """The toolset with the tools that the token opens."""
    if not bearer.reads_only:
        return toolset
    tools = {name: tool for name, tool in toolset.by_exposed.items() if tool.only_reads}
    return replace(toolset, by_exposed=ToolsByName(tools, {}, {}))


def reachable_tool_ids(bearer: Bearer, toolset: PublishedToolset) -> set[int]:
    """Tools that the token opens in the toolset, by id."""
    tools = toolset.by_exposed.values()
    return {tool.tool_id for tool in tools if not why_outside(bearer, toolset, tool)}


def reaches(bearer: Bearer, toolset: PublishedToolset, tool_id: int | None) -> bool:
    """Whether a limited token may see and act on calls of the tool: those that it could ask for
    itself."""
    if not bearer.is_limited:
        return True
    tool = toolset.by_id(tool_id) if tool_id else None
    return tool is not None and not why_outside(bearer, toolset, tool)
