"""How a tool is used: its page's tabs, and what went wrong at a server."""

from __future__ import annotations

from typing import Any

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.http import ConsoleRequest
from calls.models import Call
from calls.views import charts
from calls.views import usage_figures as used
from core.http import is_htmx, page
from core.paging import paged
from core.templatetags.console import duration
from registry.models import Server, Tool
from registry.views.tool_pages import frame

# The parts of a bar from the bottom, by the names of range_figures.OUTCOMES.
LEGEND = {
    "succeeded": gettext_lazy("Succeeded"),
    "error": gettext_lazy("Errors"),
    "stopped": gettext_lazy("Blocked, stopped or not ended"),
}


@page("calls.view_call")
def usage(request: ConsoleRequest, name: str) -> HttpResponse:
    context = frame(name, "usage")
    tool: Tool = context["tool"]
    seen = used.of_tool(tool.pk, request.user.time_zone)
    slowest = charts.rounded_up_time(max((day.p95 or 0 for day in seen.days), default=0))
    busiest = charts.rounded_up(max(day.calls for day in seen.days))
    context |= {
        "usage": seen,
        "bars": [_bar(place, day, busiest) for place, day in enumerate(seen.days)],
        "legend": LEGEND,
        "counts": [busiest, busiest // 2, 0],
        "dates": [seen.days[n * (len(seen.days) - 1) // 3].day for n in range(3)],
        "slowest": slowest,
        "half_slowest": slowest / 2,
        "p50": charts.line([day.p50 for day in seen.days], slowest),
        "p95": charts.line([day.p95 for day in seen.days], slowest),
        "width": charts.WIDTH,
        "height": charts.HEIGHT,
        "middle": charts.HEIGHT // 2,
    }
    return render(request, "calls/usage.html", context)


@page("calls.view_call")
def of_tool(request: HttpRequest, name: str) -> HttpResponse:
    context = frame(name, "calls")
    calls = Call.objects.for_list().filter(tool=context["tool"])
    calls = calls.annotate(version=F("definition__version"))
    context["page"] = paged(calls, "-id", request.GET)
    return render(request, "calls/of_tool.html", context)


@page("calls.view_call")
def trouble(request: HttpRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server, slug=slug)
    context = {"section": "servers", "server": server, "calls": used.trouble_of(server)}
    part = "#trouble" if is_htmx(request) else ""
    return render(request, f"calls/trouble.html{part}", context)


def _bar(place: int, day: used.Day, busiest: int) -> dict[str, Any]:
    return {
        "label": _sentence(day),
        "x": round(place * charts.WIDTH / used.DAYS, 1),
        "width": round(charts.WIDTH / used.DAYS, 1),
        "parts": charts.stack(place, used.DAYS, list(day.by_outcome.items()), busiest),
    }


def _sentence(day: used.Day) -> str:
    sentence = _("%(day)s: %(calls)d calls; errors: %(wrong)d of %(ended)d ended") % {
        "day": date_format(day.day, _("j M")),
        "calls": day.calls,
        "wrong": day.wrong,
        "ended": day.ended,
    }
    return sentence + (_(", p95 %s") % duration(day.p95) if day.p95 is not None else "")
