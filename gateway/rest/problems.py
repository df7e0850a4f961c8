"""Error answers of REST. Source: RFC 9457."""

from __future__ import annotations

from http import HTTPStatus
from math import ceil
from typing import Any

from django.urls import reverse
from rest_framework.response import Response
from rest_framework.views import exception_handler

from approvals.decision_keys import NoKey
from calls.queue.queue_limits import QueueFull
from core.errors import RecordUnavailable, RecordUnsure
from core.outage import Recorded
from gateway.submit.sync import NoSuchToolset
from policies.limits.compiled import PERIOD_S, LimitReached


def problem(status: int, detail: str, **members: Any) -> Response:
    body = {"title": HTTPStatus(status).phrase, "status": status, "detail": detail, **members}
    return Response(body, status, content_type="application/problem+json")


def of_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    if isinstance(error, RecordUnavailable):
        response = problem(503, str(error), **_of_call(error))
        response["Retry-After"] = "1"
        return response
    if isinstance(error, QueueFull):
        response = problem(429 if error.own else 503, str(error))
        response["Retry-After"] = "5"
        return response
    if isinstance(error, NoKey):
        return problem(503, str(error))
    if isinstance(error, NoSuchToolset):
        return problem(404, str(error))
    handled = exception_handler(error, context)
    if handled is None:
        return None
    said = problem(handled.status_code, _sentence(handled.data), **_asked_for(handled, context))
    for name in ("WWW-Authenticate", "Retry-After", "Allow"):
        if name in handled:
            said[name] = handled[name]
    return said


def rate_limit(reached: LimitReached) -> dict[str, str]:
    """The header fields of a 429. Source: RFC 9110, 10.2.3; draft-ietf-httpapi-ratelimit-headers,
    3 and 4: what is left of a policy's quota, and in how many seconds there is more."""
    limit = reached.limit
    name, wait_s = f'"limit-{limit.id}"', reached.wait_s
    if reached.is_hopeless:
        return {}
    fields = {"Retry-After": str(ceil(wait_s or 1))}
    if limit.period:
        window = PERIOD_S[limit.period]
        fields["RateLimit-Policy"] = f"{name};q={int(limit.amount)};w={window}"
        fields["RateLimit"] = f"{name};r=0;t={ceil(wait_s or 0)}"
    return fields


def _asked_for(handled: Response, context: dict[str, Any]) -> dict[str, Any]:
    """The id of the call that an answer of unknown outcome is about."""
    call_id = context["kwargs"].get("call_id") if handled.status_code == 503 else None
    return {"call": str(call_id)} if call_id else {}


def _of_call(error: RecordUnavailable) -> dict[str, Any]:
    """Under this id it stands, if it was recorded after all."""
    recorded = Recorded.UNKNOWN if isinstance(error, RecordUnsure) else Recorded.NO
    if not error.call_id:
        return {"recorded": recorded}
    look = reverse("api:call", args=[error.call_id])
    return {"recorded": recorded, "call": str(error.call_id), "look": look}


def _sentence(data: Any) -> str:
    return str(data.get("detail", data)) if isinstance(data, dict) else str(data)
