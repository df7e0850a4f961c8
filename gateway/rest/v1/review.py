"""Definitions and their differences, and publishing exactly those that were read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from core.english import gettext as _
from gateway.rest.v1 import plain
from gateway.rest.v1.members import Members, StrictChoice, Text
from gateway.rest.v1.views import ListView, RowView, ServiceView, caller_of, equal_to
from registry import services
from registry.models import Definition, Item, Server, Tool
from registry.publishing.review import reviews

TOOL = "tool"
VERSION = {"type": "integer", "minimum": 1, "maximum": 999_999_999, "required": True}
KINDS = (TOOL, *Item.Kind.values)
PUBLISHED_MAX = 500


class ReviewedBody(Members):
    kind = StrictChoice(choices=KINDS, default=TOOL)
    name = Text(max_length=2000)
    # Of the difference that was read: nothing else is published by it.
    digest = serializers.RegexField(r"^[0-9a-f]{64}\Z")


class PublicationBody(Members):
    definitions = ReviewedBody(many=True, allow_empty=False, max_length=PUBLISHED_MAX)  # type: ignore[call-arg]


class ToolAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    server = serializers.CharField()
    upstream_name = serializers.CharField()
    state = serializers.ChoiceField(choices=Tool.State.values)


class DefinitionAnswer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    digest = serializers.CharField()
    first_seen_at = serializers.DateTimeField()
    risk = serializers.IntegerField(min_value=0, max_value=100)
    findings = serializers.ListField(child=serializers.CharField())
    definition = serializers.DictField()


class ChangeAnswer(serializers.Serializer[Any]):
    what = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=["added", "removed", "changed"])
    before = serializers.CharField(allow_null=True)
    after = serializers.CharField(allow_null=True)


class DifferenceAnswer(serializers.Serializer[Any]):
    before = serializers.IntegerField()
    after = serializers.IntegerField()
    changes = ChangeAnswer(many=True)


class MarkAnswer(serializers.Serializer[Any]):
    said = serializers.CharField()
    quote = serializers.CharField()


class ReviewAnswer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=KINDS)
    name = serializers.CharField()
    digest = serializers.CharField()
    published_version = serializers.IntegerField(allow_null=True)
    version = serializers.IntegerField()
    # Findings that people read before they publish it, in the console.
    is_red = serializers.BooleanField()
    findings = serializers.ListField(child=serializers.CharField())
    marks = MarkAnswer(many=True)
    problems = serializers.ListField(child=serializers.CharField())
    changes = ChangeAnswer(many=True)
    definition = serializers.DictField()


class ReviewsAnswer(serializers.Serializer[Any]):
    items = ReviewAnswer(many=True)
    # More than these wait: publish, and read again.
    waiting = serializers.IntegerField()


class PublishedAnswer(serializers.Serializer[Any]):
    published = serializers.IntegerField()


class ToolListing(ListView):
    scopes = {"GET": ("registry.view_tool",)}
    answers = {"GET": ToolAnswer}
    queries = ("server",)
    rows = staticmethod(
        lambda request: equal_to(
            Tool.objects.filter(server__deleted_at=None).select_related("server"),
            request,
            server="server__slug",
        )
    )
    key = "exposed_name"
    cursor = str
    shown = staticmethod(plain.tool)


class OneTool(RowView):
    scopes = {"GET": ("registry.view_tool",)}
    answers = {"GET": ToolAnswer}

    def row(self, request: Request, tool: str) -> Tool:
        return _tool(tool)

    def plain(self, row: Tool) -> dict[str, Any]:
        return plain.tool(row)


class Definitions(ListView):
    """All that the server ever said of the tool, the newest first."""

    scopes = {"GET": ("registry.view_definition",)}
    answers = {"GET": DefinitionAnswer}
    rows = staticmethod(lambda request, tool: _tool(tool).definitions.all())
    key = "-version"
    shown = staticmethod(plain.definition)


class Difference(ServiceView):
    """From one version of a tool's definition to another: `?from=1&to=2`."""

    scopes = {"GET": ("registry.view_definition",)}
    answers = {"GET": DifferenceAnswer}
    queries = ("from", "to")
    query_schemas = dict.fromkeys(queries, VERSION)

    def get(self, request: Request, tool: str) -> Response:
        row = _tool(tool)
        before, after = (_version(row, request, name) for name in self.queries)
        found = plain.changes(before, after)
        return Response({"before": before.version, "after": after.version, "changes": found})


class Reviews(ServiceView):
    """All that agents do not have yet of a server, with the digests by which it is published."""

    scopes = {"GET": ("registry.operate_server",)}
    answers = {"GET": ReviewsAnswer}

    def get(self, request: Request, slug: str) -> Response:
        server = _server(slug)
        tools, items = server.tools.all(), server.items.all()
        found = [plain.review(one) for one in reviews(server, tools, items)]
        waiting = tools.waiting().count() + items.waiting().count()
        return Response({"items": found, "waiting": waiting})


class Publications(ServiceView):
    """Publishes the differences that were read: all of them, or none. Red ones are for people."""

    scopes = {"POST": ("registry.operate_server",)}
    bodies = {"POST": PublicationBody}
    answers = {"POST": (201, PublishedAnswer)}

    def post(self, request: Request, slug: str) -> Response:
        return self.once(request, lambda: self._publish(request, _server(slug)))

    def _publish(self, request: Request, server: Server) -> Response:
        wanted, by = self.body(request)["definitions"], caller_of(request)
        for publish, given in [(_publisher(server, one, n), one) for n, one in enumerate(wanted)]:
            publish(difference=given["digest"], by=by)
        return Response({"published": len(wanted)}, 201)


def _publisher(server: Server, given: dict[str, Any], place: int) -> Callable[..., object]:
    """Publishes the tool or item. Raises ValidationError if the server has none of this name."""
    kind, name = given["kind"], given["name"]
    if kind == TOOL and (tool := server.tools.filter(exposed_name=name).first()):
        return lambda **named: services.publish(tool, **named)
    if kind != TOOL and (item := server.items.filter(kind=kind, key=name).first()):
        return lambda **named: services.publish_item(item, **named)
    said = _("“%s” has nothing of this kind and name.") % server.slug
    # As REST framework places a mistake in a list.
    raise ValidationError({"definitions": [*([{}] * place), {"name": [said]}]})


def _server(slug: str) -> Server:
    return get_object_or_404(Server.objects.kept(), slug=slug)


def _tool(name: str) -> Tool:
    known = Tool.objects.filter(server__deleted_at=None).select_related("server")
    return get_object_or_404(known, exposed_name=name)


def _version(tool: Tool, request: Request, name: str) -> Definition:
    given = request.query_params.get(name, "")
    if not (given.isascii() and given.isdecimal() and len(given) < 10):
        raise ValidationError({"detail": _("%s must be the number of a version.") % name})
    return get_object_or_404(tool.definitions, version=int(given))
