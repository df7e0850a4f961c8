"""Erasing a call's payload, for good."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from approvals.payload_erasure import CannotErase, erase, find_obstacle
from audit.erasure_ledger import LedgerUnusable
from calls.models import Call
from calls.views.call_page import eyes, find_call
from core.http import page

REASON_MAX = 500


@page("calls.erase_payload", "GET", "HEAD", "POST")
def erase_payload(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    call = find_call(call_id)
    if call is None or eyes(call, request.user) is None:
        raise Http404
    reason = request.POST.get("reason", "").strip()[:REASON_MAX]
    if request.method == "POST" and reason and request.POST.get("sure"):
        return _erased(request, call, reason)
    context = {
        "section": "calls",
        "call": call,
        "obstacle": find_obstacle(call),
        "reason": reason,
        "error": _("Give a reason, and confirm.") if request.method == "POST" else "",
    }
    return render(request, "approvals/erase_payload.html", context)


def _erased(request: ConsoleRequest, call: Call, reason: str) -> HttpResponse:
    try:
        erase(call, by=request.user.actor, reason=reason)
    except CannotErase as error:
        messages.warning(request, str(error))
    except (LedgerUnusable, OSError):
        messages.error(request, _("The ledger of erasures cannot be written. Nothing was erased."))
    else:
        messages.success(request, _("The payload was erased."))
    return redirect("calls:detail", call.pk)
