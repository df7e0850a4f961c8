"""A result as its server sent it, beside what was passed on. Each look is an entry."""

from __future__ import annotations

from itertools import islice
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render

from accounts.http import ConsoleRequest
from calls.content import received_results
from calls.content.large_results import body_of
from calls.content.received_results import MOST_CHANGES
from calls.models import Call, Result
from calls.views import call_page
from core.http import page


@page("calls.view_received", "GET", "HEAD", "POST")
def received(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """Shows by POST alone: a look is recorded, and no link makes anybody look."""
    call = call_page.find_call(call_id)
    rights = call_page.eyes(call, request.user)
    if call is None or rights is None or not rights.may_see_received:
        raise Http404
    context = {"section": "calls", "call": call, "is_kept": received_results.is_kept(call)}
    if request.method == "POST" and context["is_kept"]:
        context |= _both_sides(call, received_results.look_at(call, by=request.user))
    return render(request, "calls/received.html", context)


def _both_sides(call: Call, body: bytes | None) -> dict[str, Any]:
    if body is None:
        return {"is_kept": False}
    row = Result.objects.filter(pk=call.pk).first()
    passed = body_of(row) if row else None
    found = [] if passed is None else received_results.changes(body, passed)
    changes = [*islice(found, MOST_CHANGES + 1)]
    return {
        "is_shown": True,
        "passed": passed,
        "changes": [one.shortened() for one in changes[:MOST_CHANGES]],
        "is_cut": len(changes) > MOST_CHANGES,
        "whole": body[: received_results.SHOWN],
        "rest": max(len(body) - received_results.SHOWN, 0),
    }
