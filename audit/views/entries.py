from __future__ import annotations

from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from audit import display_names, finding, services
from audit.bodies import StoredEntry, body, read
from audit.by_call import of_calls
from audit.exporting import proof
from audit.filters import DAYS, DECISIONS, FIELDS, LONGEST, RANGES, TIMES, Filters
from audit.finding import Containing
from audit.histogram import histogram
from audit.leaves import places
from audit.models import Checkpoint, Entry, SavedFilter
from audit.names import changed
from audit.report import report
from audit.signing import keys
from audit.suggestions import suggestions
from audit.tree import Tree
from core.http import page
from core.paging import Page
from core.templatetags.console import local

# Every state that a call can come to, as entries spell it.
STATES = [
    "refused",
    "invalid",
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
# Who may look into every call's arguments may search them.
PAYLOADS = "calls.view_payload"
# Of a saved filter.
NAME_MAX = 60
# A live list that nobody pauses does not grow for ever.
LIVE_ROWS = 50


@page("audit.view_entry")
def entry_list(request: HttpRequest, has: Containing) -> HttpResponse:
    filters = filters_of(request)
    within = finding.bounds(filters.since(), filters.until())
    live = "live" in request.GET and not request.GET.get("beyond")
    # What comes by itself comes entry by entry, at the top.
    if live:
        filters = replace(filters, by_call=False, oldest_first=False)
    found = _search(request, filters, within, has)
    people = display_names.of_entries([*found.page.rows, *found.with_steps])
    context = _form(filters) | {
        "page": found.page,
        "looked_to": found.looked_to,
        "looked_at": finding.time_of(found.looked_to),
        "further": f"{filters.address}&beyond={found.looked_to}",
        "histogram": histogram(filters, within),
        "within": within,
        "saved": _saved(request),
        "changed": changed([entry.pk for entry in found.page.rows]),
        "live": live,
        "calls": of_calls(found.page.rows, found.with_steps, people) if filters.by_call else [],
        "people": people,
        "after": found.page.rows[0].pk if found.page.rows else within.newest,
    }
    return render(request, "audit/list.html", context)


def filters_of(request: HttpRequest) -> Filters:
    return Filters.read(request.GET, zone_of(request))


def zone_of(request: HttpRequest) -> ZoneInfo:
    return ZoneInfo(getattr(request.user, "time_zone", "") or "UTC")


def _search(
    request: HttpRequest, filters: Filters, within: finding.Bounds, has: Containing
) -> finding.SearchResult:
    if not filters.text:
        if filters.by_call:
            return finding.calls_of(filters, request.GET, within)
        return finding.SearchResult(finding.page_of(filters, request.GET, within))
    if not request.user.has_perm(PAYLOADS):
        raise PermissionDenied
    if not request.GET.get("beyond"):
        # An answer says what is in arguments that nobody opened.
        services.record("payload.searched", actor=services.of(request.user), filters=filters.given)
    return finding.searched(filters, request.GET, within, has)


def _form(filters: Filters) -> dict[str, Any]:
    given = filters.given
    chips = [one for one in filters.labelled if one[0] in FIELDS]
    return {
        "section": "audit",
        "filters": filters,
        "given": given,
        "chips": chips,
        "more": bool(given.keys() & {"behalf", "server", "version", "action", "decision", "rule"}),
        "exact": bool(given.keys() & {"since", "until"}),
        "ranges": _ranges(),
        "states": STATES,
        "decisions": DECISIONS,
        "zone": filters.zone,
    }


def _ranges() -> list[tuple[str, Any]]:
    spans = [(name, label) for name, (label, _span) in RANGES.items()]
    return spans + [(name, label) for name, (label, _back) in DAYS.items()]


def _span(filters: Filters) -> str:
    chosen = filters.given.get("range", "")
    named = dict(_ranges()).get(chosen)
    if named:
        return str(named).lower()
    since, until = filters.since(), filters.until()
    ends = [
        _("since %(at)s") % {"at": local(since, filters.zone)} if since else "",
        _("until %(at)s") % {"at": local(until, filters.zone)} if until else "",
    ]
    return " ".join(end for end in ends if end) or _("all time")


def _saved(request: HttpRequest) -> list[SavedFilter]:
    mine_or_shared = Q(owner_id=request.user.pk) | Q(shared=True)
    return list(SavedFilter.objects.filter(mine_or_shared).select_related("owner")[:50])


@page("audit.view_entry")
def news(request: HttpRequest) -> HttpResponse:
    """The number of newer entries than the list shows, or these entries themselves."""
    filters = filters_of(request).without_text()
    given = request.GET.get("after", "")
    after = int(given) if given.isascii() and given.isdecimal() and len(given) < 19 else 0
    within = finding.bounds(None, None)
    wanted = finding.ids(filters, within, above=after, most=LIVE_ROWS)
    context: dict[str, Any] = {"filters": filters, "after": max([after, *wanted])}
    if "live" not in request.GET:
        context |= {"count": len(wanted), "many": len(wanted) == LIVE_ROWS}
        return render(request, "audit/list.html#count", context)
    context["page"] = Page(finding.entries(wanted))
    context["people"] = display_names.of_entries(context["page"].rows)
    return render(request, "audit/list.html#fresh", context)


@page("audit.view_entry")
def suggest(request: HttpRequest, field: str) -> HttpResponse:
    """Options for what is typed into one of the filters."""
    typed = request.GET.get(field, "").strip().replace("\0", "")[:LONGEST]
    return render(request, "audit/options.html", {"options": suggestions(field, typed)})


@page("audit.view_entry")
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    entry = get_object_or_404(Entry, pk=pk)
    row = read(pk)
    sealed = _sealed(row)
    siblings = list(Entry.objects.of_call(entry.call_id)) if entry.call_id else []
    cleaned = services.without_tokens(entry)
    shown = services.without_received(cleaned)
    is_received_hidden = shown != cleaned and not request.user.has_perm("calls.view_received")
    is_token_hidden = cleaned != entry.details
    context = {
        "details": shown if is_received_hidden else cleaned,
        "is_received_hidden": is_received_hidden,
        "is_token_hidden": is_token_hidden,
        # The entry's proof, and the entry as a whole, are of no use without a part of it.
        "is_partial": is_received_hidden or is_token_hidden,
        "section": "audit",
        "entry": entry,
        "changed": changed([pk]),
        "siblings": siblings,
        "people": display_names.of_entries([entry, *siblings]),
        "body": body(row),
        "sealed": sealed,
        "key": str(keys()[-1].key) if sealed else "",
    }
    return render(request, "audit/detail.html", context)


def _sealed(row: StoredEntry) -> dict[str, Any] | None:
    """The entry's place in the tree, and all that is needed to check it."""
    index, newest = places([row.id]).get(row.id), Checkpoint.objects.first()
    if index is None or newest is None or index >= newest.size:
        return None
    tree = Tree(newest.size)
    return {
        "index": index,
        "hash": tree.leaf(index).hex(),
        "checkpoint": newest,
        "proof": proof(row, index, tree),
    }


@page("audit.view_entry")
def who_ran_what(request: HttpRequest) -> HttpResponse:
    filters = filters_of(request).without_text()
    asked = {**filters.given}
    # Who chooses all time says so; one call has its own.
    if "range" not in request.GET and not asked.keys() & {"call", *TIMES}:
        asked["range"] = "24h"
    filters = Filters(asked, filters.zone, filters.now, filters.by_call)
    within = finding.bounds(filters.since(), filters.until())
    told = report(filters, within)
    context = _form(filters) | {"report": told, "span": _span(filters), "saved": _saved(request)}
    context["people"] = display_names.shown_names(told.people)
    if filters.given.get("call") and told.groups:
        context["save_as"] = f"{told.groups[0].tool} {filters.given['call'][:13]}"[:NAME_MAX]
    return render(request, "audit/report.html", context)


@page("audit.view_entry", "POST")
def save_filter(request: HttpRequest) -> HttpResponse:
    filters = Filters.read(request.POST, zone_of(request))
    name, shared = request.POST.get("name", "").strip()[:NAME_MAX], "shared" in request.POST
    if not name or not filters.given:
        messages.error(request, _("Give it a name, and at least one thing to filter by."))
    else:
        services.save_filter(name, filters.kept, shared=shared, by=request.user)
        messages.success(request, _("Saved as “%(name)s”.") % {"name": name})
    there = "audit:report" if "report" in request.POST else "audit:list"
    return redirect(f"{reverse(there)}{filters.address}")


@page("audit.view_entry", "POST")
def remove_filter(request: HttpRequest, pk: int) -> HttpResponse:
    mine = get_object_or_404(SavedFilter, pk=pk, owner_id=request.user.pk)
    services.remove_filter(mine, by=request.user)
    messages.success(request, _("“%(name)s” is removed.") % {"name": mine.name})
    return redirect("audit:list")
