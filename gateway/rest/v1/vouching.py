"""The facts that vouch for a server, and a signature that is given after its import."""

from __future__ import annotations

from typing import Any

import orjson
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.rest.v1 import conditional, plain
from gateway.rest.v1.members import Members, Text
from gateway.rest.v1.views import RowView, caller_of
from registry.models import Server, ServerOrigin
from registry.server_json import importing
from registry.server_json.document import MAX_BYTES, ServerJsonRefused
from registry.server_json.signatures import Signature
from registry.views.vouching import Vouching


class SignatureBody(Members):
    """A Sigstore bundle, and the text of the server.json where the bundle signs that."""

    bundle = serializers.DictField()
    server_json_text = Text(required=False, max_length=MAX_BYTES)


class OriginAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()
    digest = serializers.CharField()
    # Null: the document was pasted or uploaded.
    registry = serializers.CharField(allow_null=True)
    # Whether the registry lets only its owner publish under the name's namespace.
    is_namespace_checked = serializers.BooleanField()
    fetched_at = serializers.DateTimeField()
    # In the registry's words.
    published_at = serializers.CharField(allow_null=True)
    status = serializers.CharField(allow_null=True)
    package = serializers.CharField(allow_null=True)
    package_version = serializers.CharField(allow_null=True)
    pinned_digest = serializers.CharField(allow_null=True)
    # Whether the command that runs it names the package in this version.
    names_package = serializers.BooleanField()
    # Whether the server has another address than at its import.
    is_moved = serializers.BooleanField()


class LastReviewAnswer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    # Null: published without a review.
    by = serializers.CharField(allow_null=True)


class SignatureAnswer(serializers.Serializer[Any]):
    identity = serializers.CharField()
    issuer = serializers.CharField()
    # Whether a workflow of the GitHub account that the name states signed it.
    is_publishers = serializers.BooleanField()
    about = serializers.ChoiceField(choices=["server.json", "package"])
    digest = serializers.CharField()
    predicate = serializers.CharField(allow_null=True)
    # Of the log, or else of the certificate.
    at = serializers.DateTimeField()
    is_log_time = serializers.BooleanField()
    log_index = serializers.CharField()


class VouchingAnswer(serializers.Serializer[Any]):
    # Null: the server was registered by its address.
    origin = OriginAnswer(allow_null=True)
    # Of any of its tools; null: none was published.
    review = LastReviewAnswer(allow_null=True)
    signature = SignatureAnswer(allow_null=True)


class WhoVouches(RowView):
    scopes = {"GET": ("registry.view_server",)}
    answers = {"GET": VouchingAnswer}
    # The next review changes no signature.
    volatile = ("review",)

    def row(self, request: Request, slug: str) -> Server:
        return get_object_or_404(Server.objects.kept().select_related("origin"), slug=slug)

    def plain(self, row: Server) -> dict[str, Any]:
        return plain.vouching(Vouching(row))


class SignatureOfServer(WhoVouches):
    """Verifies a Sigstore bundle for a server that was imported, or removes the one that it has."""

    scopes = {"PUT": ("registry.change_server",), "DELETE": ("registry.change_server",)}
    bodies = {"PUT": SignatureBody}
    answers = {"PUT": VouchingAnswer, "DELETE": (204, None)}
    get = None  # type: ignore[assignment]

    def put(self, request: Request, slug: str) -> Response:
        # Verified before the row is locked: it takes a process of its own.
        found = self._verify(request, self.row(request, slug))
        return self.changed(request, lambda server: self._keep(request, server, found), slug=slug)

    def _verify(self, request: Request, server: Server) -> Signature:
        origin, given = _origin(server), self.body(request)
        conditional.check(request, self.tag(server))
        text = given.get("server_json_text", "").encode()
        try:
            return importing.verify_later(origin, orjson.dumps(given["bundle"]), text)
        except ServerJsonRefused as error:
            raise ValidationError({"detail": str(error)}) from error

    def _keep(self, request: Request, server: Server, found: Signature) -> Response:
        importing.keep_signature(server.origin, found, by=caller_of(request))
        return self.answer(server)

    def delete(self, request: Request, slug: str) -> Response:
        return self.changed(request, lambda server: self._remove(request, server), slug=slug)

    def _remove(self, request: Request, server: Server) -> Response:
        origin = _origin(server)
        if not origin.signature:
            raise Http404
        importing.remove_signature(origin, by=caller_of(request))
        return Response(None, 204)


def _origin(server: Server) -> ServerOrigin:
    """Raises Http404 for a server that was registered by its address."""
    found: ServerOrigin | None = getattr(server, "origin", None)
    if found is None:
        raise Http404
    return found
