"""Which tools of a toolset in search mode an agent may learn of."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from accounts.tokens import Bearer
from calls.models import Call
from gateway.call_request import NO_ARGUMENTS, CallRequest, subject
from policies.decide import RuleBook
from registry.publishing.agent_names import ToolsByName
from registry.publishing.published_tools import PublishedTool, PublishedToolset

_NO_CALL = UUID(int=0)


def is_denied(
    rules: RuleBook, bearer: Bearer, toolset: PublishedToolset, tool: PublishedTool
) -> bool:
    """Whether rules deny it to this agent whatever the arguments."""
    asked = CallRequest(
        call_id=_NO_CALL,
        bearer=bearer,
        toolset=toolset,
        tool=tool,
        tool_name=tool.exposed_name,
        arguments=NO_ARGUMENTS,
        parsed={},
        origin=Call.Origin.MCP,
    )
    return rules.always_denies(subject(asked, tool))


def without_denied(rules: RuleBook, bearer: Bearer, toolset: PublishedToolset) -> PublishedToolset:
    """Leaves out tools that are denied to the agent; only in search mode."""
    if not toolset.search_mode:
        return toolset
    tools = {
        name: tool
        for name, tool in toolset.by_exposed.items()
        if not is_denied(rules, bearer, toolset, tool)
    }
    return replace(toolset, by_exposed=ToolsByName(tools, {}, {}))
