"""Toolsets: what is in them, which agents have them, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import MAX_HOLD_S, Agent
from core.english import gettext as _
from gateway.rest.api import format_of, tool_list_response
from gateway.rest.v1 import forms, plain
from gateway.rest.v1.members import Flag, Members, NameList, StrictChoice, Text, Whole
from gateway.rest.v1.views import ListView, RowView, ServiceView, bearer_of, caller_of, require
from gateway.submit import sync
from registry import services
from registry.forms.toolsets import ToolsetForm
from registry.models import OwnTool, RegistryReaders, Separator, Server, ShownTool, Tool, Toolset
from registry.publishing import override_service
from registry.publishing.tool_lists import FORMATS

# Columns of an override.
SHOWN = ("name", "title", "description", "pinned")
SEES_AGENTS = "accounts.view_agent"
# By member: how it is set.
SETTERS: dict[str, Callable[..., object]] = {
    "title": services.set_title,
    "separator": services.set_separator,
    "search_mode": services.set_search_mode,
    "own_tools": services.set_own_tools,
    "hold_seconds": services.set_hold,
    "agent_sign_in": services.set_agent_sign_in,
    "registry_readers": services.set_registry_readers,
}


class ToolsetBody(Members):
    name = Text(max_length=64)
    title = Text(required=False, allow_blank=True, max_length=200)


class ToolsetChange(Members):
    """Lists replace the present ones."""

    title = Text(required=False, allow_blank=True, max_length=200)
    servers = NameList(required=False)
    tools = NameList(required=False)
    # Takes the permission to view agents too.
    agents = NameList(required=False)
    separator = StrictChoice(choices=Separator.values, required=False)
    search_mode = Flag(required=False)
    own_tools = serializers.ListField(child=StrictChoice(choices=OwnTool.values), required=False)
    hold_seconds = Whole(required=False, allow_null=True, min_value=1, max_value=MAX_HOLD_S)
    agent_sign_in = Flag(required=False)
    registry_readers = StrictChoice(choices=RegistryReaders.values, required=False)


class ToolsetAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    servers = serializers.ListField(child=serializers.CharField())
    tools = serializers.ListField(child=serializers.CharField())
    agents = serializers.ListField(child=serializers.CharField())
    separator = serializers.ChoiceField(choices=Separator.values)
    search_mode = serializers.BooleanField()
    own_tools = serializers.ListField(child=serializers.ChoiceField(choices=OwnTool.values))
    hold_seconds = serializers.IntegerField(allow_null=True)
    agent_sign_in = serializers.BooleanField()
    registry_readers = serializers.ChoiceField(choices=RegistryReaders.values)


class OverrideBody(Members):
    """Replaces the server's own words; an empty member leaves them as they are."""

    name = Text(allow_blank=True, max_length=64)
    title = Text(allow_blank=True, max_length=override_service.MAX_TITLE)
    description = Text(allow_blank=True, max_length=override_service.MAX_DESCRIPTION)
    # The fixed arguments: the text of one JSON object, so that none of its digits is lost.
    pinned = Text(allow_blank=True, max_length=override_service.MAX_PINNED)


class LossAnswer(serializers.Serializer[Any]):
    tool = serializers.CharField()
    # In its schema, as a JSON pointer.
    path = serializers.CharField()
    why = serializers.CharField()


class ToolListAnswer(serializers.Serializer[Any]):
    toolset = serializers.CharField()
    format = serializers.ChoiceField(choices=list(FORMATS))
    digest = serializers.CharField()
    tools = serializers.ListField(child=serializers.DictField())
    losses = LossAnswer(many=True)


class Toolsets(ListView):
    scopes = {"GET": ("registry.view_toolset",), "POST": ("registry.add_toolset",)}
    bodies = {"POST": ToolsetBody}
    answers = {"GET": ToolsetAnswer, "POST": (201, ToolsetAnswer)}
    rows = staticmethod(lambda request: _every(request))  # noqa: PLW0108 defined below
    key = "slug"
    cursor = str
    shown = staticmethod(plain.toolset)

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._create(request))

    def _create(self, request: Request) -> Response:
        given = self.body(request)
        form = ToolsetForm({"slug": given["name"], "title": given.get("title", "")})
        forms.check(form, {"slug": "name"})
        made = services.create_toolset(**form.cleaned_data, by=caller_of(request))
        there = reverse("api:toolset_detail", args=[made.slug])
        return OneToolset().answer(made, 201, there)


class OneToolset(RowView):
    scopes = {"GET": ("registry.view_toolset",), "PATCH": ("registry.change_toolset",)}
    bodies = {"PATCH": ToolsetChange}
    answers = {"GET": ToolsetAnswer, "PATCH": ToolsetAnswer}

    def row(self, request: Request, slug: str) -> Toolset:
        return get_object_or_404(_every(request), slug=slug)

    def plain(self, row: Toolset) -> dict[str, Any]:
        return plain.toolset(row)

    def patch(self, request: Request, slug: str) -> Response:
        return self.changed(request, lambda toolset: self._change(request, toolset), slug=slug)

    def _change(self, request: Request, toolset: Toolset) -> Response:
        given, by = self.body(request), caller_of(request)
        if "agents" in given:
            require(request, SEES_AGENTS)
        for name in SETTERS.keys() & given.keys():
            SETTERS[name](toolset, given[name], by=by)
        for name, (rows, key, join, part) in MEMBERS.items():
            if name in given:
                wanted = _named(name, rows(), key, given[name])
                now = {one.pk: one for one in getattr(toolset, name).all()}
                for pk in wanted.keys() - now.keys():
                    join(toolset, wanted[pk], by=by)
                for pk in now.keys() - wanted.keys():
                    part(toolset, now[pk], by=by)
        return self.answer(_every(request).get(pk=toolset.pk))


class ToolsOfToolset(ServiceView):
    """The toolset's published tools as a model's API takes them, with what the format cannot say.
    The version is the digest."""

    scopes = {"GET": ("registry.view_toolset",)}
    answers = {"GET": ToolListAnswer}
    queries = ("format",)
    query_schemas = {"format": {"type": "string", "enum": list(FORMATS), "default": "mcp"}}

    def get(self, request: Request, slug: str) -> Response:
        form = format_of(request)
        get_object_or_404(Toolset, slug=slug)
        return tool_list_response(request, sync.published(slug), slug, form)


class OverrideOfTool(RowView):
    """The tool as the toolset shows it: its name for agents, its words, and arguments that are
    fixed for them."""

    scopes = {"GET": ("registry.view_toolset",), "PATCH": ("registry.change_toolset",)}
    bodies = {"PATCH": OverrideBody}
    answers = {"GET": OverrideBody, "PATCH": OverrideBody}

    def row(self, request: Request, slug: str, tool: str) -> ShownTool:
        toolset = get_object_or_404(Toolset, slug=slug)
        found = override_service.tools_of(toolset).select_related("server", "published", "latest")
        row = get_object_or_404(found.distinct(), exposed_name=tool)
        shown = ShownTool.objects.filter(toolset=toolset, tool=row).first()
        shown = shown or ShownTool(toolset=toolset)
        shown.tool = row
        return shown

    def plain(self, row: ShownTool) -> dict[str, Any]:
        return {name: getattr(row, name) for name in SHOWN}

    def locked(self, row: ShownTool) -> QuerySet[Toolset]:
        # The row that is there, whether the tool is shown otherwise or not.
        return Toolset.objects.filter(pk=row.toolset_id)

    def patch(self, request: Request, slug: str, tool: str) -> Response:
        def change(row: ShownTool) -> Response:
            given = {**self.plain(row), **self.body(request)}
            try:
                override_service.show(row.toolset, row.tool, by=caller_of(request), **given)
            except override_service.OverrideRefused as error:
                raise ValidationError({error.field: [str(error)]}) from error
            return self.answer(self.row(request, slug, tool))

        return self.changed(request, change, slug=slug, tool=tool)


Verb = Callable[..., None]
# By member: what can be in it, by which field it is named, and how it is put in and taken out.
MEMBERS: dict[str, tuple[Callable[[], QuerySet[Any]], str, Verb, Verb]] = {
    "servers": (
        Server.objects.kept,
        "slug",
        services.add_server,
        services.remove_server,
    ),
    "tools": (
        lambda: Tool.objects.filter(server__deleted_at=None),
        "exposed_name",
        services.add_tool,
        services.remove_tool,
    ),
    "agents": (Agent.objects.all, "name", services.assign, services.unassign),
}


def _every(request: Request) -> QuerySet[Toolset]:
    """With no agent for who may not see agents."""
    sees = SEES_AGENTS in bearer_of(request).scopes
    agents = Agent.objects.all() if sees else Agent.objects.none()
    return Toolset.objects.prefetch_related("servers", "tools", Prefetch("agents", agents))


def _named(member: str, rows: QuerySet[Any], key: str, names: list[str]) -> dict[int, Any]:
    """By id. Raises ValidationError for a name that is none."""
    found = {getattr(one, key): one for one in rows.filter(**{f"{key}__in": names})}
    for place, name in enumerate(names):
        if name not in found:
            said = _("There is no “%s” here.") % name
            raise ValidationError({member: [*([{}] * place), [said]]})
    return {one.pk: one for one in found.values()}
