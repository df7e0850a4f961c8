from __future__ import annotations

from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.http import ConsoleRequest
from accounts.models import Agent
from audit.filters import RANGES, moment
from calls import services
from calls.content import results
from calls.content.large_results import body_of
from calls.content.payloads import note_look
from calls.models import Call, CallQuerySet, Result
from calls.record.states import LIVE, Executed, State
from calls.views import call_page, related, sorting
from calls.views.usage_figures import OF_A_TOOL, p95_of_tools
from core.english import gettext
from core.http import page
from core.ids import first_id
from core.outage import recording
from core.paging import paged
from registry.models import Tool
from registry.schemas.arguments import arguments

FILTERS = ("state", "agent", "tool", "range", "since", "until")
# What the state filter offers besides single states.
GROUPS = {"live": (_("Not ended yet"), LIVE), "unknown": (_("Outcome unknown"), (State.UNKNOWN,))}
NEWS_MAX = 100
UNKNOWN_MAX = 200
FIND_MAX = 200


@page("calls.view_call")
def call_list(request: ConsoleRequest) -> HttpResponse:
    chosen = sorting.chosen_order(request.GET)
    found = paged(chosen.rows(_filtered(request).for_list()), chosen.order, request.GET)
    p95 = p95_of_tools({call.tool_id for call in found.rows if call.tool_id is not None})
    context = {
        "section": "calls",
        "page": found,
        "rows": [(call, p95.get(call.tool_id or 0)) for call in found.rows],
        "of_a_tool": OF_A_TOOL,
        "order": chosen,
        "orders": sorting.orders_for(request.GET),
        "sorts_by_duration": sorting.sorts_by_duration(request.GET),
        "ranges": [(name, label) for name, (label, _span) in RANGES.items()],
        "filters": request.GET,
        "filtered": any(request.GET.get(name) for name in FILTERS),
        "groups": [(name, label) for name, (label, _states) in GROUPS.items()],
        "states": State.choices,
        "agents": Agent.objects.values_list("name", flat=True),
        "zone": request.user.time_zone,
    }
    return render(request, "calls/list.html", context)


@page("calls.view_call")
def unknown(request: HttpRequest) -> HttpResponse:
    """Calls of unknown outcome, the oldest first."""
    waiting = Call.objects.for_page().filter(state=State.UNKNOWN).order_by("id")
    context = {"section": "unknown", "calls": waiting[:UNKNOWN_MAX], "most": UNKNOWN_MAX}
    return render(request, "calls/unknown.html", context)


@page("calls.view_call")
def news(request: ConsoleRequest) -> HttpResponse:
    """The list's rows that had not ended, as they are now, and the number of newer calls."""
    shown = Call.objects.filter(pk__in=_ids(request.GET.getlist("live")))
    newest = _ids([request.GET.get("newest", "")])
    newer = _filtered(request).filter(pk__gt=newest[0]) if newest else _filtered(request)
    count = len(newer.values_list("pk")[:NEWS_MAX])
    context = {"calls": shown, "count": count, "many": count == NEWS_MAX}
    return render(request, "calls/list.html#news", context)


@page("calls.view_call")
def detail(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    context = _picture(request, call_id, request.GET.get("find", "").strip()[:FIND_MAX])
    call: Call = context["call"]
    schema = call.definition.content.get("inputSchema") if call.definition else None
    if context["may_read"]:
        note_look(call, by=request.user)
    context |= {
        "section": "calls",
        "may_cancel": call_page.may_cancel(call, request.user),
        "may_resolve": call_page.may_resolve(call, request.user),
        "arguments": arguments(schema or {}, _arguments(call)) if context["may_read"] else None,
        "near": related.near(call),
        "curl": related.as_curl(call) if context["may_read"] else "",
    }
    return render(request, "calls/detail.html", context)


@page("calls.view_call")
def payload(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """A call's arguments and result, for pages of the record."""
    call = _readable(request, call_id)
    context = _picture(request, call_id)
    schema = call.definition.content.get("inputSchema") if call.definition else None
    context |= {"arguments": arguments(schema or {}, _arguments(call))}
    return render(request, "calls/payload.html", context)


@page("calls.view_call")
def piece(request: ConsoleRequest, call_id: UUID, number: int) -> HttpResponse:
    """One image or sound of a result, with a type that we chose and nothing that can run."""
    found = results.piece_bytes(_readable(request, call_id), number)
    if found is None:
        raise Http404
    content, media_type = found
    response = _strangers(content, media_type)
    if media_type == "application/octet-stream":
        response["Content-Disposition"] = f'attachment; filename="piece-{number}"'
    return response


@page("calls.view_call")
def whole_result(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """The very bytes that came back, to keep."""
    call = _readable(request, call_id)
    row = Result.objects.filter(pk=call.pk).first()
    body = body_of(row) if row else None
    if body is None:
        raise Http404
    response = _strangers(body, "application/json")
    response["Content-Disposition"] = f'attachment; filename="result-{call.pk}.json"'
    return response


@page("calls.view_call")
def sent_arguments(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """The very bytes that were asked, shown and sent, to keep."""
    call = _readable(request, call_id)
    response = _strangers(call.to_send, "application/json")
    response["Content-Disposition"] = f'attachment; filename="arguments-{call.pk}.json"'
    return response


@page("calls.cancel_call", "POST")
def resolve(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """Records the outcome of an unresolved call."""
    call: Call = _picture(request, call_id)["call"]
    executed, note = _found_out(request, call)
    if executed not in (Executed.YES, Executed.NO) or not note:
        messages.error(request, _("Say whether it was executed, and how you found out."))
        return redirect("calls:detail", call_id)
    try:
        with recording(request):
            found = Executed(executed)
            services.resolve(call.pk, by=request.user, executed=found, note=note[:1000])
    except services.NotResolvable as error:
        messages.warning(request, str(error))
    return redirect("calls:detail", call_id)


def _found_out(request: ConsoleRequest, call: Call) -> tuple[str, str]:
    """The outcome that a person enters for an unresolved call, or takes from its late reply."""
    if number := request.POST.get("late", ""):
        late = get_object_or_404(call.late_replies, pk=number if number.isdecimal() else 0)
        return late.executed, gettext("The server's own reply says so, which came late.")
    return request.POST.get("executed", ""), request.POST.get("note", "").strip()


def _strangers(content: bytes, media_type: str) -> HttpResponse:
    response = HttpResponse(content, content_type=media_type)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def _filtered(request: ConsoleRequest) -> CallQuerySet:
    found = Call.objects.all()
    state = request.GET.get("state", "")
    if state in GROUPS:
        found = found.filter(state__in=GROUPS[state][1])
    elif state in State.values:
        found = found.filter(state=state)
    if agent := request.GET.get("agent"):
        found = found.filter(agent=_one(Agent.objects.filter(name=agent)))
    if tool := request.GET.get("tool"):
        found = found.filter(tool=_one(Tool.objects.filter(exposed_name=tool)))
    return found.filter(**_times(request))


def _times(request: ConsoleRequest) -> dict[str, UUID]:
    """Bounds of ids: an index of ids is one of times too."""
    zone = ZoneInfo(request.user.time_zone or "UTC")
    given = {"pk__gte": request.GET.get("since", ""), "pk__lt": request.GET.get("until", "")}
    read = {name: moment(text, zone) for name, text in given.items()}
    if (chosen := request.GET.get("range", "")) in RANGES:
        read = {"pk__gte": timezone.now() - RANGES[chosen][1]}
    return {name: first_id(at) for name, at in read.items() if at}


def _one(rows: QuerySet[Any]) -> int:
    """Its key, looked up first: a plan for a join cannot know how many calls it means."""
    return rows.values_list("pk", flat=True).first() or 0


def _picture(request: ConsoleRequest, call_id: UUID, find: str = "") -> dict[str, Any]:
    picture = call_page.of_call(call_id, request.user, find)
    if picture is None:
        raise Http404
    return picture


def _readable(request: ConsoleRequest, call_id: UUID) -> Call:
    picture = _picture(request, call_id)
    if not picture["may_read"]:
        raise Http404
    call: Call = picture["call"]
    note_look(call, by=request.user)
    return call


def _arguments(call: Call) -> Any:
    try:
        return call.exact_arguments
    except ValueError:
        return call.to_send.decode(errors="backslashreplace")


def _ids(texts: list[str]) -> list[UUID]:
    try:
        return [UUID(text) for text in texts if text]
    except ValueError:
        return []
