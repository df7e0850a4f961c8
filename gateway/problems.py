"""What REST says when it cannot do what was asked. Source: RFC 9457."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from rest_framework.response import Response
from rest_framework.views import exception_handler

from calls.room import QueueFull
from core.errors import RecordUnavailable
from gateway.asking import NoSuchToolset


def problem(status: int, detail: str, **members: Any) -> Response:
    body = {"title": HTTPStatus(status).phrase, "status": status, "detail": detail, **members}
    return Response(body, status, content_type="application/problem+json")


def of_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    if isinstance(error, RecordUnavailable):
        response = problem(503, str(error))
        response["Retry-After"] = "1"
        return response
    if isinstance(error, QueueFull):
        response = problem(429 if error.own else 503, str(error))
        response["Retry-After"] = "5"
        return response
    if isinstance(error, NoSuchToolset):
        return problem(404, str(error))
    handled = exception_handler(error, context)
    if handled is None:
        return None
    said = problem(handled.status_code, _sentence(handled.data))
    for name in ("WWW-Authenticate", "Retry-After", "Allow"):
        if name in handled:
            said[name] = handled[name]
    return said


def _sentence(data: Any) -> str:
    return str(data.get("detail", data)) if isinstance(data, dict) else str(data)
