"""Answers to requests that failed, in whichever layer: session, view or template.

The language may not have been chosen by then: it is that of the cookie, or else the browser's.
"""

from __future__ import annotations

import sys
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import get_language_from_request, override
from django.utils.translation import gettext as _
from django.views import defaults

from core import outage
from core.http import is_htmx
from core.outage import OutageAnswer, Recorded

RETRY_S = "1"
APIS = ("/api/", "/scim/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    with override(_language(request)):
        return defaults.bad_request(request, exception)


def failed(request: HttpRequest) -> HttpResponse:
    with override(_language(request)):
        return _failed(request)


def _language(request: HttpRequest) -> str:
    return "en" if _is_api(request) else get_language_from_request(request)


def _failed(request: HttpRequest) -> HttpResponse:
    if not outage.is_outage(sys.exc_info()[1]):
        is_api = _is_api(request)
        return _problem(500, _("Countersign failed.")) if is_api else defaults.server_error(request)
    told = outage.outage_answer(request)
    response = _rest(request, told) if _is_api(request) else _page(request, told)
    response["Retry-After"] = RETRY_S
    response["Cache-Control"] = "no-store"
    return response


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(APIS)


def _rest(request: HttpRequest, told: OutageAnswer) -> HttpResponse:
    members: dict[str, Any] = {"recorded": told.recorded}
    detail = [_("The database does not answer."), sentence(request, told)]
    if told.call_id is not None:
        members |= {"call": str(told.call_id), "look": reverse("api:call", args=[told.call_id])}
        if told.recorded == Recorded.YES:
            detail.append(_("Whether the call has been sent or has ended is not known here."))
    return _problem(503, " ".join(detail), **members)


def _problem(status: int, detail: str, **members: Any) -> HttpResponse:
    title = "Service Unavailable" if status == 503 else "Internal Server Error"
    body = {"title": title, "status": status, "detail": detail, **members}
    return JsonResponse(body, status=status, content_type="application/problem+json")


def _page(request: HttpRequest, told: OutageAnswer) -> HttpResponse:
    context = {"told": told, "sentence": sentence(request, told)}
    if not is_htmx(request):
        # Without the request, whose session and person would be read from the database.
        return HttpResponse(render_to_string("503.html", context), status=503)
    response = HttpResponse(render_to_string("503.html#note", context), status=503)
    if request.method not in ("GET", "HEAD"):
        response["HX-Retarget"] = "#messages"
        response["HX-Reswap"] = "innerHTML"
    return response


def sentence(request: HttpRequest, told: OutageAnswer) -> str:
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return _("Nothing was changed by this request. Try again soon.")
    match told.recorded:
        case Recorded.YES:
            return _("What you asked for is recorded. Only its result cannot be shown right now.")
        case Recorded.NO:
            return _("What you asked for was not recorded, and nothing was done. Try again soon.")
        case _:
            return _(
                "Whether what you asked for was recorded is not known. Look before you try again."
            )
