"""The OpenAPI document (3.1), made from what the views say of themselves."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

PROBLEM = "application/problem+json"
HEADER: Final = "header"
QUERY: Final = "query"
LIMIT = OpenApiParameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}, QUERY
)
# PostgreSQL has no text with NUL.
TEXT = {"type": "string", "pattern": "^[^\\u0000]*$"}
# By how a list reads its cursors.
CURSORS: dict[Any, dict[str, Any]] = {
    int: {"type": "string", "pattern": "^[0-9]{1,18}$"},
    UUID: {"type": "string", "format": "uuid"},
    str: TEXT,
}
# Of an export: which one its format says.
FILES = ("application/x-ndjson", "text/csv")
KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": "^[!-~]{1,200}$"},
    HEADER,
    description="The same key gets the same answer for 24 hours, and changes nothing again.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    HEADER,
    required=True,
    description="The ETag that was read: another version is not changed.",
)


class MistakeAnswer(serializers.Serializer[Any]):
    pointer = serializers.CharField()
    detail = serializers.CharField()


class ProblemAnswer(serializers.Serializer[Any]):
    """Source: RFC 9457."""

    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = MistakeAnswer(many=True, required=False)  # type: ignore[assignment]


class ServiceTokens(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.authentication.ServiceTokenAuthentication"
    name = "serviceToken"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "css_…"}


class ServiceSchema(AutoSchema):
    """Reads `scopes`, `bodies`, `answers` and `queries` of a view."""

    # A ServiceView, which imports this module.
    view: Any

    def get_operation(self, *args: Any, **named: Any) -> dict[str, Any] | None:
        operation = super().get_operation(*args, **named)
        if operation is not None:
            operation["x-permissions"] = [*self.view.scopes_of(self.method)]
        return operation

    def get_operation_id(self) -> str:
        return f"{self.method.lower()}{type(self.view).__name__}"

    def get_tags(self) -> list[str]:
        return [self.path.split("/")[3]]

    def get_description(self) -> str:  # type: ignore[override]
        return (type(self.view).__doc__ or "").strip().split("\n\n")[0]

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False

    def get_request_serializer(self) -> Any:
        return self.view.bodies.get(self.method)

    def get_response_serializers(self) -> Any:
        status, answer = self._answer()
        problem = OpenApiResponse(ProblemAnswer, "Problem details (RFC 9457).")
        answers: dict[Any, Any] = {("default", PROBLEM): problem}
        if answer is bytes:
            answers |= {(status, kind): OpenApiTypes.STR for kind in FILES}
        elif status < 400:
            answers[status] = OpenApiResponse(answer)
        if empty := self.view.empty_answers.get(self.method):
            answers[empty] = OpenApiResponse()
        return answers

    def get_override_parameters(self) -> list[Any]:
        view = self.view
        if self.method == "POST":
            return [KEY] if view.has_key else []
        if self.method != "GET":
            return [IF_MATCH]
        narrowing = [_query(name, view.query_schemas.get(name)) for name in view.queries]
        paging = [_cursor(view), LIMIT] if view.is_list else []
        return narrowing + paging + ([_fields(view.answers["GET"])] if view.has_fields else [])

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        """Bodies have no other members than these, and `together` says which go together."""
        made = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if hasattr(serializer, "together"):
            made |= {"additionalProperties": False, **serializer.together}
        return made

    def _answer(self) -> tuple[int, Any]:
        """Status and members of success."""
        answer = self.view.answers[self.method]
        status, answer = answer if isinstance(answer, tuple) else (200, answer)
        return status, _page_of(answer) if self.method == "GET" and self.view.is_list else answer


def _query(name: str, schema: dict[str, Any] | None) -> OpenApiParameter:
    """One with a schema of its own is required where that says so."""
    found = dict(schema or TEXT)
    return OpenApiParameter(name, found, QUERY, required=found.pop("required", False))


def _cursor(view: Any) -> OpenApiParameter:
    schema = CURSORS[getattr(type(view), "cursor", int)]
    return OpenApiParameter("cursor", schema, QUERY, description="`next` of an earlier answer.")


def _fields(answer: type[serializers.Serializer[Any]]) -> OpenApiParameter:
    """Members with commas between."""
    names = {"type": "string", "enum": [*answer().fields]}
    schema = {"type": "array", "items": names, "minItems": 1}
    return OpenApiParameter("fields", schema, QUERY, style="form", explode=False)


def _page_of(answer: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    members = {"items": answer(many=True), "next": serializers.CharField(allow_null=True)}
    name = answer.__name__.replace("Answer", "Page")
    made: type[serializers.Serializer[Any]] = type(name, (serializers.Serializer,), members)
    return made
