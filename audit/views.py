from __future__ import annotations

from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from audit import filters
from audit.models import Entry
from core.http import page
from core.paging import paged

# Every state that a call can come to, as entries spell it.
STATES = [
    "refused",
    "held",
    "approved",
    "queued",
    "running",
    "succeeded",
    "tool_error",
    "failed",
    "timed_out",
    "cancelled",
    "unknown",
    "denied",
    "expired",
    "withdrawn",
    "superseded",
    "resolved",
]


@page("audit.view_entry")
def entry_list(request: HttpRequest) -> HttpResponse:
    zone = ZoneInfo(getattr(request.user, "time_zone", "") or "UTC")
    context = {
        "section": "audit",
        "page": paged(filters.entries(request.GET, zone), "-id", request.GET),
        "filters": request.GET,
        "filtered": any(request.GET.get(name) for name in filters.NAMES),
        "ranges": [(name, label) for name, (label, _span) in filters.RANGES.items()],
        "states": STATES,
        "zone": zone,
    }
    return render(request, "audit/list.html", context)


@page("audit.view_entry")
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    entry = get_object_or_404(Entry, pk=pk)
    siblings = Entry.objects.of_call(entry.call_id) if entry.call_id else []
    context = {"section": "audit", "entry": entry, "siblings": siblings}
    return render(request, "audit/detail.html", context)
