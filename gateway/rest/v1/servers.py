"""Servers: registering, how they are reached, and discovery."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from calls.views.delete_server import has_open_calls
from core import loop
from core.english import gettext as _
from gateway.rest import problems
from gateway.rest.v1 import forms, plain
from gateway.rest.v1.members import Flag, Members, StrictChoice, Text
from gateway.rest.v1.views import ListView, RowView, caller_of
from registry import services
from registry.discovery import discovery
from registry.forms.servers import (
    CommandForm,
    CommandReachForm,
    ReachInput,
    UrlForm,
    UrlReachForm,
)
from registry.models import Discovery, Server

DISCOVERY_S = 90


class ConnectionBody(Members):
    """`url` or `command`. Headers and credential are set anew with each change: a credential that
    stayed while the address moves could be sent anywhere."""

    url = Text(required=False, max_length=2000)
    together = {
        "oneOf": [
            {"required": ["url"]},
            {
                "required": ["command"],
                "not": {"anyOf": [{"required": ["credential"]}, {"required": ["headers"]}]},
            },
        ]
    }
    # A name in the host's catalogue of commands.
    command = Text(required=False, max_length=100)
    credential = Text(required=False, allow_blank=True, max_length=8000, write_only=True)
    headers = serializers.DictField(
        child=serializers.RegexField(r"^[^\r\n]*\Z", max_length=8000, allow_blank=True),
        required=False,
        write_only=True,
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("url" in attrs) == ("command" in attrs):
            raise serializers.ValidationError(_("Give either url or command."))
        if "command" in attrs and {"credential", "headers"} & set(attrs):
            raise serializers.ValidationError(_("A command has no headers and no credential."))
        return attrs


class ServerBody(ConnectionBody):
    name = Text(max_length=32)
    title = Text(required=False, allow_blank=True, max_length=200)


class ServerChange(Members):
    enabled = Flag(required=False)
    # Of `enabled`: it stands in the entry.
    reason = Text(required=False, allow_blank=True, max_length=300)
    relays = serializers.ListField(child=StrictChoice(choices=Server.Relay.values), required=False)
    wanted_revision = StrictChoice(choices=Server.Revision.values, required=False, allow_blank=True)


class ServerAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    transport = serializers.ChoiceField(choices=Server.Transport.values)
    address = serializers.CharField()
    owner = serializers.CharField()
    enabled = serializers.BooleanField()
    relays = serializers.ListField(child=serializers.ChoiceField(choices=Server.Relay.values))
    wanted_revision = serializers.ChoiceField(choices=Server.Revision.values, allow_blank=True)
    health = serializers.ChoiceField(choices=Server.Health.values)
    health_since = serializers.DateTimeField(allow_null=True)
    revision = serializers.CharField()
    discovered_at = serializers.DateTimeField(allow_null=True)


class DiscoveryAnswer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    succeeded = serializers.BooleanField()
    changed = serializers.BooleanField()
    summary = serializers.CharField()


class Servers(ListView):
    """Servers, and a new one. Discovery is asked for separately, and nothing of it is published."""

    scopes = {"GET": ("registry.view_server",), "POST": ("registry.add_server",)}
    bodies = {"POST": ServerBody}
    answers = {"GET": ServerAnswer, "POST": (201, ServerAnswer)}
    rows = staticmethod(lambda request: Server.objects.kept().select_related("owner"))
    key = "slug"
    cursor = str
    shown = staticmethod(plain.server)

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._register(request))

    def _register(self, request: Request) -> Response:
        given, by = self.body(request), caller_of(request)
        form = UrlForm if "url" in given else CommandForm
        asked = _filled(form, {**given, "slug": given["name"]}, {"slug": "name"}).servers()[0]
        made = services.register(
            asked.slug, **asdict(asked.reach), title=asked.title, owner=by.person, by=by
        )
        there = reverse("api:server_detail", args=[made.slug])
        return OneServer().answer(made, 201, there)


class OneServer(RowView):
    scopes = {
        "GET": ("registry.view_server",),
        "PATCH": ("registry.change_server",),
        "DELETE": ("registry.change_server",),
    }
    bodies = {"PATCH": ServerChange}
    answers = {"GET": ServerAnswer, "PATCH": ServerAnswer, "DELETE": (204, None)}
    volatile = ("health", "health_since", "revision", "discovered_at")

    def row(self, request: Request, slug: str) -> Server:
        return _server(slug)

    def plain(self, row: Server) -> dict[str, Any]:
        return plain.server(row)

    def unseen(self, row: Server) -> dict[str, Any]:
        sealed = (row.sealed_credential, row.sealed_headers)
        return {"sealed": [bytes(one or b"").hex() for one in sealed]}

    def patch(self, request: Request, slug: str) -> Response:
        return self.changed(request, lambda server: self._change(request, server), slug=slug)

    def _change(self, request: Request, server: Server) -> Response:
        given, by = self.body(request), caller_of(request)
        if "enabled" in given:
            reason = given.get("reason", "").strip()
            services.set_enabled(server, given["enabled"], by=by, reason=reason)
        if "relays" in given:
            services.set_relays(server, given["relays"], by=by)
        if "wanted_revision" in given:
            services.set_revision(server, given["wanted_revision"], by=by)
        return self.answer(_server(server.slug))

    def delete(self, request: Request, slug: str) -> Response:
        return self.changed(request, lambda server: self._delete(request, server), slug=slug)

    def _delete(self, request: Request, server: Server) -> Response:
        by = caller_of(request)
        services.delete_server(server, by=by, has_open_calls=has_open_calls)
        return Response(None, 204)


class ConnectionOfServer(RowView):
    """How the server is reached. What it offers at another address waits for a review."""

    scopes = {"PUT": ("registry.change_server",)}
    bodies = {"PUT": ConnectionBody}
    answers = {"PUT": ServerAnswer}
    volatile = OneServer.volatile
    row = OneServer.row
    plain = OneServer.plain
    unseen = OneServer.unseen
    get = None  # type: ignore[assignment]

    def put(self, request: Request, slug: str) -> Response:
        return self.changed(request, lambda server: self._connect(request, server), slug=slug)

    def _connect(self, request: Request, server: Server) -> Response:
        given = self.body(request)
        if server.is_at_url != ("url" in given):
            wanted = "command" if "command" in given else "url"
            said = _("The server's transport is “%s”, which never changes.")
            raise ValidationError({wanted: [said % server.transport]})
        reach: ReachInput = _filled(
            UrlReachForm if server.is_at_url else CommandReachForm, given
        ).reach()
        asked = asdict(reach)
        asked.pop("transport")
        services.set_connection(server, **asked, by=caller_of(request))
        return self.answer(_server(server.slug))


class Discoveries(ListView):
    """Asks the server now what it offers, and waits for the answer."""

    scopes = {"GET": ("registry.view_discovery",), "POST": ("registry.operate_server",)}
    answers = {"GET": DiscoveryAnswer, "POST": (201, DiscoveryAnswer)}
    # To ask twice does nothing else.
    has_key = False
    rows = staticmethod(lambda request, slug: Discovery.objects.filter(server=_server(slug)))
    key = "-id"
    shown = staticmethod(plain.discovery)

    def post(self, request: Request, slug: str) -> Response:
        server = _server(slug)
        if not server.enabled:
            raise ValidationError({"detail": _("“%s” is disabled.") % slug})
        try:
            looked = loop.discovery.run(discovery.look_at([server.pk]), timeout=DISCOVERY_S)
        except TimeoutError:
            # Most likely another discovery of the same server goes first.
            said = _("The discovery did not end within %d s. Read its result later.")
            return problems.problem(503, said % DISCOVERY_S)
        return Response(plain.discovery(looked[0]), 201)


def _server(slug: str) -> Server:
    return get_object_or_404(Server.objects.kept().select_related("owner"), slug=slug)


def _filled(form: Any, given: dict[str, Any], names: dict[str, str] | None = None) -> Any:
    """The form with these members, whose mistakes have the members' names."""
    lines = "\n".join(f"{name}: {value}" for name, value in given.get("headers", {}).items())
    filled = form({**given, "headers": lines})
    forms.check(filled, names)
    return filled
