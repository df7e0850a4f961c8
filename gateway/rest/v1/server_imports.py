"""Servers by a server.json, or out of another MCP registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson
from django.urls import reverse
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from core.english import gettext as _
from gateway.rest.v1.members import Members, Text, Whole
from gateway.rest.v1.servers import OneServer, ServerAnswer
from gateway.rest.v1.views import ServiceView, caller_of
from registry.models import Server
from registry.server_json import importing
from registry.server_json.document import MAX_BYTES, MAX_WAYS, ServerJsonRefused
from registry.server_json.importing import ImportedDocument

Way = TypeVar("Way")


class ImportBody(Members):
    """`server_json`, the same as a file's `server_json_text`, or `registry` with `server` and its
    `version`; of it one remote, or one package with the host's command that runs it. `signature` is
    a Sigstore bundle that signs the text, or names a digest that the document pins."""

    name = Text(max_length=32)
    title = Text(required=False, allow_blank=True, max_length=200)
    server_json = serializers.DictField(required=False)
    server_json_text = Text(required=False, max_length=MAX_BYTES)
    signature = serializers.DictField(required=False)
    registry = Text(required=False, max_length=500)
    server = Text(required=False, max_length=200)
    version = Text(required=False, max_length=255)
    together = {
        "oneOf": [
            {"required": ["server_json"]},
            {"required": ["server_json_text"]},
            {"required": ["registry", "server"]},
        ]
    }
    # Which one, from 0 on.
    remote = Whole(required=False, min_value=0, max_value=MAX_WAYS)
    package = Whole(required=False, min_value=0, max_value=MAX_WAYS)
    command = Text(required=False, max_length=100)
    # Of variables and headers, by their names.
    values = serializers.DictField(
        child=serializers.CharField(max_length=8000, allow_blank=True),
        required=False,
        write_only=True,
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        is_listed = "registry" in attrs and "server" in attrs
        if ["server_json" in attrs, "server_json_text" in attrs, is_listed].count(True) != 1:
            said = _("Give server_json, server_json_text, or registry and server.")
            raise serializers.ValidationError(said)
        if "package" in attrs and ("remote" in attrs or "command" not in attrs):
            raise serializers.ValidationError(_("A package needs a command, and no remote."))
        return attrs


class ImportedServers(ServiceView):
    """Registers a server by its server.json. What it offers waits for the ordinary review."""

    scopes = {"POST": ("registry.add_server",)}
    bodies = {"POST": ImportBody}
    answers = {"POST": (201, ServerAnswer)}

    def post(self, request: Request) -> Response:
        given = self.body(request)
        return self.once_fetched(
            request,
            lambda: _read_document(given),
            lambda document: self._import(request, given, document),
        )

    def _import(
        self, request: Request, given: dict[str, Any], document: ImportedDocument
    ) -> Response:
        with _saying():
            made = _register(request, given, document)
        return OneServer().answer(made, 201, reverse("api:server_detail", args=[made.slug]))


@contextmanager
def _saying() -> Iterator[None]:
    """A fault of the document is the request's mistake."""
    try:
        yield
    except ServerJsonRefused as error:
        raise ValidationError({"detail": str(error)}) from error


@_saying()
def _read_document(given: dict[str, Any]) -> ImportedDocument:
    document = _read(given)
    if "signature" in given:
        return importing.verify_signature(document, orjson.dumps(given["signature"]))
    return document


def _read(given: dict[str, Any]) -> ImportedDocument:
    if "server_json_text" in given:
        return importing.read_pasted(given["server_json_text"].encode())
    if "server_json" in given:
        return importing.read_pasted(orjson.dumps(given["server_json"]))
    return importing.fetch_server(
        given["registry"], given["server"], given.get("version", "latest")
    )


def _register(request: Request, given: dict[str, Any], document: ImportedDocument) -> Server:
    by = caller_of(request)
    who: dict[str, Any] = {"owner": by.person, "by": by, "title": given.get("title", "")}
    if "package" in given:
        package = _pick(document.server.packages, given["package"])
        return importing.register_package(given["name"], document, package, given["command"], **who)
    remote = _pick(document.server.remotes, given.get("remote", 0))
    return importing.register_remote(
        given["name"], document, remote, given.get("values", {}), **who
    )


def _pick(ways: Sequence[Way], number: int) -> Way:
    if number >= len(ways):
        raise ServerJsonRefused(_("The document has no such remote or package."))
    return ways[number]
