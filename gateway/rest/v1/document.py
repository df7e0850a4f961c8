"""The OpenAPI document, as the API gives it."""

from __future__ import annotations

from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.rest.v1 import urls
from gateway.rest.v1.views import ServiceView


class OpenApi(ServiceView):
    scopes = {"GET": ()}

    def get(self, request: Request) -> Response:
        return Response(document())


@cache
def document() -> dict[str, Any]:
    generator = SchemaGenerator(patterns=urls.under("api/v1/"))  # type: ignore[no-untyped-call]
    made: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return made
