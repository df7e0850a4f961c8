"""The header of every page of one tool; pages of higher packages use it too."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404

from core.templatetags.console import pretty
from core.text import hidden_count
from registry.models import Definition, Tool


def frame(name: str, tab: str, version: str = "") -> dict[str, Any]:
    """Context of templates that extend registry/tool_frame.html; `tab`: the open one."""
    tool = get_object_or_404(Tool.objects.for_catalogue(), exposed_name=name)
    definition = definition_of(tool, version)
    return {
        "section": "catalogue",
        "tab": tab,
        "tool": tool,
        "definition": definition,
        # Parsed and written again: in the server's JSON they may stand as \\u200b.
        "hidden": hidden_count(pretty(definition.content)),
    }


def definition_of(tool: Tool, version: str) -> Definition:
    """The one that is asked for, else what the server says now."""
    if version.isdecimal() and len(version) < 10:
        return get_object_or_404(tool.definitions, version=int(version))
    if tool.latest is None:
        raise Http404
    return tool.latest
