"""Definitions of the tools for searching; their names come from the toolset."""

from __future__ import annotations

from typing import Any

from registry.models import SearchTool
from registry.publishing.published_tools import PublishedToolset

MOST, USUAL = 20, 5
MOST_PAGES = 25
MAX_QUERY = 500
_LOOKS = {"readOnlyHint": True, "openWorldHint": False}
_READS = {"readOnlyHint": True, "openWorldHint": True}
# Clients that load definitions on demand (Claude Code) load these at once: they are what finds the
# others.
_META = {"anthropic/alwaysLoad": True}
_CHANGES = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}


def definitions(toolset: PublishedToolset) -> dict[str, dict[str, Any]]:
    """Those that this toolset lists in search mode, by their names."""
    name = toolset.own_name
    search, describe = name(SearchTool.SEARCH), name(SearchTool.DESCRIBE)
    read, call = name(SearchTool.CALL_READ), name(SearchTool.CALL)
    made = [
        _tool(
            search,
            "Search for tools",
            "Find tools by what they do. This list does not name them all: search here before "
            "you decide that there is no tool. Say what you want to do in a few words, in "
            "English or Chinese.",
            _LOOKS,
            query={
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_QUERY,
                "description": "What the tool should do, such as “refund a card payment”.",
            },
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": MOST,
                "default": USUAL,
                "description": "How many tools to return at most.",
            },
            page={
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_PAGES,
                "default": 1,
                "description": "Where “more” is true, the next page has those that fit less.",
            },
        ),
        _tool(
            describe,
            "Describe a tool",
            f"Get a tool's whole definition, with its arguments. Takes a name that {search} gave.",
            _LOOKS,
            tool=_NAME,
        ),
        _tool(
            read,
            "Call a read-only tool",
            f"Call a tool that only reads, by the name that {search} gave. Rules, approvals and "
            "limits are those of the tool itself.",
            _READS,
            tool=_NAME,
            arguments=_ARGUMENTS,
        ),
        _tool(
            call,
            "Call a tool",
            f"Call any tool by the name that {search} gave. Rules, approvals and limits are those "
            "of the tool itself.",
            _CHANGES,
            tool=_NAME,
            arguments=_ARGUMENTS,
        ),
    ]
    return {tool["name"]: tool for tool in made}


_NAME = {"type": "string", "description": "The tool's name."}
_ARGUMENTS = {"type": "object", "description": "The arguments that its definition asks for."}


def _tool(
    name: str,
    title: str,
    description: str,
    annotations: dict[str, bool],
    **properties: dict[str, Any],
) -> dict[str, Any]:
    required = [one for one in properties if one not in ("limit", "page", "arguments")]
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        "annotations": annotations,
        "_meta": _META,
    }
