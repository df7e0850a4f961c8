"""How a toolset shows one of its tools: what agents see of it, and what is fixed for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core.http import page
from registry.forms.toolsets import ShownForm
from registry.models import Definition, ShownTool, Tool, Toolset
from registry.names import MAX_NAME
from registry.publishing import agent_names, override_service
from registry.publishing.override_service import AgentNames
from registry.publishing.tool_override import OverriddenTool, as_written
from registry.views import client_snippets


@dataclass(frozen=True, slots=True)
class ToolPreview:
    """A tool as agents see it in a list."""

    tool: Tool
    # Empty where two tools would have it.
    name: str
    said: ShownTool | None = None
    # Not what it would be if no other tool came to the same.
    doubled: bool = False

    @property
    def is_other(self) -> bool:
        """Not what people call it."""
        return self.name != self.tool.exposed_name

    @property
    def length(self) -> int:
        return len(self.name)

    @property
    def too_long_for(self) -> str:
        return ", ".join(client_snippets.too_long_for(self.name))


def previews(toolset: Toolset, tools: list[Tool], names: AgentNames) -> list[ToolPreview]:
    said = {one.tool_id: one for one in toolset.shown_tools.filter(tool__in=tools)}
    return [
        ToolPreview(tool, names.names.get(tool.pk, ""), said.get(tool.pk), tool.pk in names.doubled)
        for tool in tools
    ]


@page("registry.view_toolset", "GET", "HEAD", "POST")
def shown_tool(request: ConsoleRequest, slug: str, name: str) -> HttpResponse:
    toolset = get_object_or_404(Toolset, slug=slug)
    found = override_service.tools_of(toolset).select_related("server", "published", "latest")
    tool = get_object_or_404(found.distinct(), exposed_name=name)
    said = ShownTool.objects.filter(toolset=toolset, tool=tool).first()
    form = ShownForm(request.POST or None, initial=_initial(said))
    if request.method == "POST":
        if not request.user.has_perm("registry.change_toolset"):
            raise PermissionDenied
        if form.is_valid() and _show(toolset, tool, form, request):
            return redirect("registry:shown_tool", slug, name)
    context = {"section": "toolsets", "toolset": toolset, "tool": tool, "form": form}
    return render(request, "registry/shown_tool.html", context | _context(toolset, tool, said))


def _show(toolset: Toolset, tool: Tool, form: ShownForm, request: ConsoleRequest) -> bool:
    try:
        override_service.show(toolset, tool, by=request.user, **form.cleaned_data)
    except override_service.OverrideRefused as error:
        form.add_error(error.field, str(error))
        return False
    messages.success(request, _("Agents see “%s” as you said.") % tool)
    return True


def _initial(said: ShownTool | None) -> dict[str, str]:
    fields = ("name", "title", "description", "pinned")
    return {field: getattr(said, field) for field in fields} if said else {}


def _context(toolset: Toolset, tool: Tool, said: ShownTool | None) -> dict[str, Any]:
    """The server's own words, and what agents get instead."""
    definition: Definition | None = tool.published or tool.latest
    whole = (said and said.name) or tool.exposed_name
    listed = override_service.names_of(toolset).names.get(tool.pk)
    name = listed or agent_names.public_name(whole, toolset.separator)
    shown = (
        as_written(said.name, said.title, said.description, said.pinned)
        if said
        else OverriddenTool()
    )
    content = definition.content if definition else {}
    told = shown.words(content, name=name, exposed_name=tool.exposed_name) if content else {}
    prefixed = [(client, prefix + name) for client, prefix in client_snippets.PREFIXES.items()]
    return {
        "definition": definition,
        "told": told,
        "is_offered": shown.is_readable
        and tool.state == Tool.State.PUBLISHED
        and tool.server.enabled,
        "prefixed": [(c, whole, len(whole), len(whole) > MAX_NAME) for c, whole in prefixed],
    }
