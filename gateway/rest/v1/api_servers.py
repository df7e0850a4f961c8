"""Servers that are HTTP APIs: an OpenAPI document, and which of its operations are offered."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from core.english import gettext as _
from gateway.rest.v1 import forms
from gateway.rest.v1.members import Flag, Members, StrictChoice, Text
from gateway.rest.v1.servers import OneServer, ServerAnswer
from gateway.rest.v1.views import RowView, ServiceView, caller_of
from registry.forms.api_documents import ApiForm
from registry.models import ApiDocument
from registry.openapi import importing
from registry.openapi.document import ApiDescription, DocumentRefused
from registry.openapi.importing import DocumentInput
from registry.openapi.operations import EFFECTS


class DocumentBody(Members):
    """`document_url`, or `document` as a text. 1 MiB of it: larger ones are fetched."""

    document_url = Text(required=False, max_length=2000)
    document = Text(required=False, max_length=1024 * 1024)
    external_references = Flag(required=False, default=False)
    together = {"oneOf": [{"required": ["document"]}, {"required": ["document_url"]}]}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("document" in attrs) == ("document_url" in attrs):
            raise serializers.ValidationError(_("Give either document or document_url."))
        return attrs


class ApiServerBody(DocumentBody):
    name = Text(max_length=32)
    title = Text(required=False, allow_blank=True, max_length=200)
    # Of the API; without it the first address that the document names.
    url = Text(required=False, allow_blank=True, max_length=2000)
    credential = Text(required=False, allow_blank=True, max_length=8000, write_only=True)
    headers = serializers.DictField(
        child=serializers.RegexField(r"^[^\r\n]*\Z", max_length=8000, allow_blank=True),
        required=False,
        write_only=True,
    )


class OperationBody(Members):
    # "GET /pets/{id}".
    operation = Text(max_length=2000)
    # As its method says, where it is not given.
    effect = StrictChoice(choices=EFFECTS, required=False)


class OperationsBody(Members):
    offered = serializers.ListField(child=OperationBody(), max_length=5000)


class OperationAnswer(serializers.Serializer[Any]):
    operation = serializers.CharField()
    tool = serializers.CharField()
    summary = serializers.CharField()
    offered = serializers.BooleanField()
    effect = serializers.CharField()
    # Why it cannot be a tool; "": it can.
    left_out = serializers.CharField()
    notes = serializers.ListField(child=serializers.CharField())


class ApiDocumentAnswer(serializers.Serializer[Any]):
    server = serializers.CharField()
    address = serializers.CharField()
    # Where it was fetched; "": sent as a text.
    document_url = serializers.CharField()
    external_documents = serializers.ListField(child=serializers.CharField())
    digest = serializers.CharField()
    changed_at = serializers.DateTimeField()
    operations = OperationAnswer(many=True)


class ApiServers(ServiceView):
    """Registers an HTTP API by its document. It offers nothing before operations are chosen."""

    scopes = {"POST": ("registry.add_server",)}
    bodies = {"POST": ApiServerBody}
    answers = {"POST": (201, ServerAnswer)}

    def post(self, request: Request) -> Response:
        given = self.body(request)
        return self.once_fetched(
            request, lambda: _fetch(given), lambda form: self._register(request, given, form)
        )

    def _register(self, request: Request, given: dict[str, Any], form: ApiForm) -> Response:
        by = caller_of(request)
        made = importing.register_api(
            given["name"],
            form.description,
            owner=by.person,
            by=by,
            url=given.get("url", ""),
            title=given.get("title", ""),
            headers=form.cleaned_data["headers"],
            credential=given.get("credential", ""),
        )
        return OneServer().answer(made, 201, reverse("api:server_detail", args=[made.slug]))


class ApiDocuments(RowView):
    """A server's document, and what became of each operation. Another document publishes nothing:
    ask for a discovery and review what changed."""

    scopes = {"GET": ("registry.view_server",), "PUT": ("registry.change_server",)}
    bodies = {"PUT": DocumentBody}
    answers = {"GET": ApiDocumentAnswer, "PUT": ApiDocumentAnswer}

    def row(self, request: Request, slug: str) -> ApiDocument:
        kept = ApiDocument.objects.filter(server__deleted_at=None).select_related("server")
        return get_object_or_404(kept, server__slug=slug)

    def plain(self, row: ApiDocument) -> dict[str, Any]:
        return {
            "server": row.server.slug,
            "address": row.server.url,
            "document_url": row.source,
            "external_documents": sorted(row.others),
            "digest": row.digest,
            "changed_at": row.changed_at,
            "operations": [_operation(row, one) for one in row.coverage],
        }

    def put(self, request: Request, slug: str) -> Response:
        # Fetched before anything is locked.
        description = _read(self.body(request))
        return self.changed(request, lambda row: self._set(request, row, description), slug=slug)

    def _set(self, request: Request, row: ApiDocument, description: ApiDescription) -> Response:
        importing.set_document(row.server, description, by=caller_of(request))
        return self.answer(self.row(request, row.server.slug))


class OfferedOperations(ApiDocuments):
    """Exactly these operations are offered from the next discovery on, once published."""

    scopes = {"PUT": ("registry.change_server",)}
    bodies = {"PUT": OperationsBody}
    answers = {"PUT": ApiDocumentAnswer}
    get = None  # type: ignore[assignment]

    def put(self, request: Request, slug: str) -> Response:
        given = self.body(request)["offered"]
        effects = {one["operation"]: one.get("effect", "") for one in given}
        return self.changed(request, lambda row: self._choose(request, row, effects), slug=slug)

    def _choose(self, request: Request, row: ApiDocument, effects: dict[str, str]) -> Response:
        importing.choose(row.server, effects, by=caller_of(request))
        return self.answer(self.row(request, row.server.slug))


def _fetch(given: dict[str, Any]) -> ApiForm:
    lines = "\n".join(f"{name}: {value}" for name, value in given.get("headers", {}).items())
    form = ApiForm({**given, "slug": given["name"], "headers": lines})
    forms.check(form, {"slug": "name"})
    return form


def _read(given: dict[str, Any]) -> ApiDescription:
    text, url = given.get("document", ""), given.get("document_url", "")
    try:
        return importing.read_input(DocumentInput(text.encode(), url, given["external_references"]))
    except DocumentRefused as error:
        raise ValidationError({"document_url" if url else "document": [str(error)]}) from error


def _operation(row: ApiDocument, one: dict[str, Any]) -> dict[str, Any]:
    return {
        "operation": one["key"],
        "tool": one["name"],
        "summary": one["summary"],
        "offered": one["key"] in row.chosen,
        "effect": importing.effect_of(row, one["key"]),
        "left_out": one["problem"],
        "notes": one["notes"],
    }
