"""Error answers of REST. Source: RFC 9457."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from math import ceil
from typing import Any

from django.http import Http404
from django.urls import reverse
from psycopg.errors import UniqueViolation
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView, exception_handler

from approvals.decision_keys import NoKey
from approvals.freezes import NotFrozen
from approvals.policy_plans.applying import PlanNotApplied
from approvals.policy_plans.planning import PlanningBusy
from audit.export_jobs import TooManyExports
from calls.queue.queue_limits import QueueFull
from core.english import gettext as _
from core.errors import CountersignError, RecordUnavailable, RecordUnsure
from core.outage import Recorded
from gateway.rest.formats import Renderer
from gateway.submit.sync import NoSuchToolset
from notifications.schedules import ScheduleInUse
from policies.limits.compiled import PERIOD_S, LimitReached
from registry.managed import ManagedElsewhere
from registry.services import PublicationRefused, RollBackRefused, ServerInUse
from registry.versions.item_versions import ItemNotPublished

# The change was understood, and does not fit what is there.
CONFLICTS = (
    NotFrozen,
    PublicationRefused,
    RollBackRefused,
    ServerInUse,
    ScheduleInUse,
    ItemNotPublished,
    ManagedElsewhere,
    PlanNotApplied,
    TooManyExports,
)
# Of REST framework's and of forms' mistakes in more members than one.
TOGETHER = "__all__"


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
    if isinstance(error, NoKey | PlanningBusy):
        return problem(503, str(error))
    if isinstance(error, NoSuchToolset):
        return problem(404, str(error))
    if isinstance(error, Http404):
        # Django's own words name our classes.
        return problem(404, _("Nothing is at this address, or this token may not see it."))
    if isinstance(error, CONFLICTS):
        return problem(409, str(error))
    if isinstance(error.__cause__, UniqueViolation):
        return problem(409, _("Another request created one with this name at the same moment."))
    if isinstance(error, CountersignError):
        return problem(400, str(error))
    handled = exception_handler(error, context)
    if handled is None:
        return None
    if mistakes := _mistakes(handled.data):
        return problem(400, _("The body has mistakes: see errors."), errors=mistakes)
    said = problem(handled.status_code, _sentence(handled.data), **_asked_for(handled, context))
    for name in ("WWW-Authenticate", "Retry-After", "Allow"):
        if name in handled:
            said[name] = handled[name]
    return said


def rate_limit(reached: LimitReached) -> dict[str, str]:
    """The header fields of a 429. Source: RFC 9110, 10.2.3; draft-ietf-httpapi-ratelimit-headers,
    3 and 4: what is left of a policy's quota, and in how many seconds there is more."""
    if reached.is_hopeless:
        return {}
    return {"Retry-After": str(ceil(reached.wait_s or 1)), **quotas([reached])}


def quotas(reached: Iterable[LimitReached]) -> dict[str, str]:
    """The same of limits that are reached, in a list; without those that have no window."""
    periodic = [one for one in reached if one.limit.period and not one.is_hopeless]
    if not periodic:
        return {}
    return {
        "RateLimit-Policy": ", ".join(map(_quota_policy, periodic)),
        "RateLimit": ", ".join(map(_rate_left, periodic)),
    }


def _quota_policy(reached: LimitReached) -> str:
    limit = reached.limit
    return f'"limit-{limit.id}";q={ceil(limit.amount)};w={PERIOD_S[limit.period]}'


def _rate_left(reached: LimitReached) -> str:
    return f'"limit-{reached.limit.id}";r=0;t={ceil(reached.wait_s or 0)}'


class Nothing(APIView):
    """Each address below /api/ that is none; public, like every wrong address."""

    authentication_classes = []
    permission_classes = [AllowAny]
    renderer_classes = [Renderer]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(_("There is no such address."))

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        return of_exception


def _mistakes(data: Any, pointer: str = "#") -> list[dict[str, str]]:
    """Each mistake with the place of its member (RFC 6901). None where the answer is a sentence."""
    if isinstance(data, dict) and not ("detail" in data and pointer == "#"):
        parts = ((f"{pointer}/{_escaped(str(key))}", value) for key, value in data.items())
        # What is wrong with the members together is of the whole body.
        parts = ((place.removesuffix(f"/{TOGETHER}") or "#", value) for place, value in parts)
        return [one for place, value in parts for one in _mistakes(value, place)]
    if isinstance(data, list):
        texts = [{"pointer": pointer, "detail": str(one)} for one in data if isinstance(one, str)]
        inner = ((n, one) for n, one in enumerate(data) if not isinstance(one, str))
        return texts + [m for n, one in inner for m in _mistakes(one, f"{pointer}/{n}")]
    return []


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


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
