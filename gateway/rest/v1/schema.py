"""The OpenAPI document (3.1), made from what the views say of themselves."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

PROBLEM = "application/problem+json"
HEADER: Final = "header"
QUERY: Final = "query"
LIST = [
    OpenApiParameter("cursor", str, QUERY, description="`next` of an earlier answer."),
    OpenApiParameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}, QUERY
    ),
]
FIELDS = OpenApiParameter(
    "fields", str, QUERY, description="Only these members, with commas between."
)
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
            answers[status, "application/octet-stream"] = OpenApiTypes.BINARY
        elif status < 400:
            answers[status] = OpenApiResponse(answer)
        return answers

    def get_override_parameters(self) -> list[Any]:
        view = self.view
        if self.method == "POST":
            return [KEY] if view.has_key else []
        if self.method != "GET":
            return [IF_MATCH]
        narrowing = [OpenApiParameter(name, str, QUERY) for name in view.queries]
        is_selected = view.is_list or view.is_versioned
        return narrowing + (LIST if view.is_list else []) + ([FIELDS] if is_selected else [])

    def _answer(self) -> tuple[int, Any]:
        """Status and members of success."""
        answer = self.view.answers[self.method]
        status, answer = answer if isinstance(answer, tuple) else (200, answer)
        return status, _page_of(answer) if self.method == "GET" and self.view.is_list else answer


def _page_of(answer: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    members = {"items": answer(many=True), "next": serializers.CharField(allow_null=True)}
    name = answer.__name__.replace("Answer", "Page")
    made: type[serializers.Serializer[Any]] = type(name, (serializers.Serializer,), members)
    return made
