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
    _part_of_answers(made)
    return made


def _part_of_answers(made: dict[str, Any]) -> None:
    """With `fields`, an answer has only some of its members."""
    schemas = made["components"]["schemas"]
    for one in made["paths"].values():
        if not any(given["name"] == "fields" for given in one.get("get", {}).get("parameters", ())):
            continue
        answer = one["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        found = schemas[_name_of(answer)]
        if "next" in found["properties"]:
            found = schemas[_name_of(found["properties"]["items"]["items"])]
        if "required" in found:
            # Clients that do not send it may count on them.
            found["x-required-without-fields"] = found.pop("required")


def _name_of(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
