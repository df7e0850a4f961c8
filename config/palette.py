"""Search everywhere: pages, actions, tools, calls and whatever has a name, by a few letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.http import ConsoleRequest
from accounts.models import User
from calls.models import Call
from config.palette_actions import find_actions
from config.palette_names import KINDS, RESULTS_MAX, address, find_named
from config.palette_pages import PAGES
from core.http import is_htmx, page
from registry.models import Tool
from registry.versions.search_index import parted
from registry.views import catalogue_search

WORDS_MAX = 8
# A shorter text is in most arguments.
TEXT_MIN = 3
# A call's id, its beginning, or its fingerprint.
_HEX = re.compile(r"[0-9a-f]{4,8}|[0-9a-f]{8}-[0-9a-f-]{0,27}")


class PaletteEntry(NamedTuple):
    kind: str
    icon: str
    name: str
    href: str
    note: str = ""


@page("")
def find(request: ConsoleRequest) -> HttpResponse:
    text = request.GET.get("q", "").strip()[:100]
    context = {
        "section": "",
        "text": text,
        "places": list(places(text, request.user)),
        "record": _record(text, request.user),
    }
    return render(request, "find.html#places" if is_htmx(request) else "find.html", context)


def places(text: str, person: User) -> Iterator[PaletteEntry]:
    """Only what this person may open; what is named exactly stands first."""
    yield from _calls(text, person)
    yield from _pages(text, person)
    if text:
        yield from _actions(text, person)
        yield from _tools(text, person)
        yield from _named(text, person)


def _pages(text: str, person: User) -> Iterator[PaletteEntry]:
    for known in PAGES:
        if text.casefold() not in str(known.name).casefold():
            continue
        if not known.permission or person.has_perm(known.permission):
            href = reverse(known.address) + known.query
            yield PaletteEntry(str(_("Page")), known.icon, str(known.name), href)


def _tools(text: str, person: User) -> Iterator[PaletteEntry]:
    if not person.has_perm("registry.view_tool"):
        return
    by_name = Tool.objects.filter(exposed_name__icontains=text).order_by("exposed_name")
    found = by_name.only("exposed_name", "state")[:RESULTS_MAX]
    # What no name has is looked for in titles, descriptions and arguments.
    for tool in found or catalogue_search.with_words(text):
        href = reverse("registry:tool", args=[tool.exposed_name])
        note = "" if tool.state == Tool.State.PUBLISHED else tool.get_state_display()
        yield PaletteEntry(str(_("Tool")), "tool", tool.exposed_name, href, note)


def _named(text: str, person: User) -> Iterator[PaletteEntry]:
    for found in find_named([text], person):
        note = found.note.strip()
        if found.kind == "agent":
            note = str(_("for {owner}")).format(owner=note)
        label, icon = str(KINDS[found.kind].label), found.kind
        yield PaletteEntry(label, icon, found.name, address(found, person), note)


def _actions(text: str, person: User) -> Iterator[PaletteEntry]:
    words = parted(text).casefold().split()[:WORDS_MAX]
    for action in find_actions(words, person):
        yield PaletteEntry(str(_("Action")), "next", action.label, action.href)


def _record(text: str, person: User) -> str:
    """Arguments have no index: the audit log looks through them, stretch by stretch."""
    if len(text) < TEXT_MIN or not person.has_perms(["audit.view_entry", "calls.view_payload"]):
        return ""
    return f"{reverse('audit:list')}?{urlencode({'text': text})}"


def _calls(text: str, person: User) -> Iterator[PaletteEntry]:
    text = text.casefold()
    if not _HEX.fullmatch(text) or not person.has_perm("calls.view_call"):
        return
    digits = text.replace("-", "")
    first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    named = Call.objects.filter(pk__gte=first, pk__lte=last).order_by("-pk")
    decided = Call.objects.exclude(call_digest="").filter(call_digest__startswith=digits)
    found = {
        call.pk: call
        for rows in (decided.order_by("-pk"), named)
        for call in rows.select_related("agent")[:RESULTS_MAX]
    }
    for call in list(found.values())[:RESULTS_MAX]:
        known = call.fingerprint or call.short_id
        note = f"{call.agent.name} · {call.get_state_display()} · {known}"
        href = reverse("calls:detail", args=[call.pk])
        yield PaletteEntry(str(_("Call")), "calls", call.tool_name, href, note)
