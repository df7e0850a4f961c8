"""Anywhere from anywhere: pages, tools, servers, agents and calls, found by a few letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.http import ConsoleRequest
from accounts.models import Agent, User
from calls.models import Call
from core.http import is_htmx, page
from registry.models import Server, Tool

# Of each kind, so that no kind pushes another off the list.
RESULTS_MAX = 6
# A call's id, its beginning, or its fingerprint.
_HEX = re.compile(r"[0-9a-f]{4,8}|[0-9a-f]{8}-[0-9a-f-]{0,27}")


class PaletteEntry(NamedTuple):
    kind: str
    icon: str
    name: str
    href: str
    note: str = ""


class PalettePage(NamedTuple):
    icon: str
    # Translated when it is shown.
    name: object
    address: str
    permission: str = ""
    query: str = ""


PAGES = [
    PalettePage("overview", _("Overview"), "overview", "calls.view_call"),
    PalettePage("catalogue", _("Catalogue"), "registry:catalogue", "registry.view_tool"),
    PalettePage("server", _("Servers"), "registry:servers", "registry.view_server"),
    PalettePage("queue", _("Queue"), "approvals:queue", "approvals.view_approval"),
    PalettePage("allow", _("Standing approvals"), "approvals:grants", "approvals.view_grant"),
    PalettePage("calls", _("Calls"), "calls:list", "calls.view_call"),
    PalettePage(
        "running", _("Calls that have not ended"), "calls:list", "calls.view_call", "?state=live"
    ),
    PalettePage("unknown", _("Unresolved calls"), "calls:unknown", "calls.view_call"),
    PalettePage("disabled", _("Emergency stops"), "approvals:freezes", "calls.view_call"),
    PalettePage("audit", _("Audit"), "audit:list", "audit.view_entry"),
    PalettePage("audit", _("Who ran what"), "audit:report", "audit.view_entry"),
    PalettePage("rule", _("Policies"), "policies:rules", "policies.view_rule"),
    PalettePage("rule", _("Policy simulator"), "policies:explain", "policies.view_rule"),
    PalettePage("add", _("New rule"), "policies:add_rule", "policies.add_rule"),
    PalettePage("rule", _("Limits"), "policies:limits", "policies.view_limit"),
    PalettePage("add", _("New limit"), "policies:add_limit", "policies.add_limit"),
    PalettePage("agent", _("Agents"), "accounts:agents"),
    PalettePage("add", _("New agent"), "accounts:add_agent", "accounts.add_agent"),
    PalettePage("toolset", _("Toolsets"), "registry:toolsets", "registry.view_toolset"),
    PalettePage("add", _("New toolset"), "registry:add_toolset", "registry.add_toolset"),
    PalettePage("server", _("Register a server"), "registry:register", "registry.add_server"),
    PalettePage("person", _("Users"), "accounts:people", "accounts.view_user"),
    PalettePage("add", _("Invite user"), "accounts:invite", "accounts.add_user"),
    PalettePage("bell", _("Notifications"), "notifications:webhooks", "notifications.view_webhook"),
    PalettePage("add", _("New webhook"), "notifications:add_webhook", "notifications.add_webhook"),
    PalettePage("settings", _("Settings"), "accounts:settings"),
    PalettePage("bell", _("Your notifications"), "notifications:profile"),
    PalettePage("person", _("Your profile: time zone and password"), "accounts:profile"),
]


@page("")
def find(request: ConsoleRequest) -> HttpResponse:
    text = request.GET.get("q", "").strip()[:100]
    context = {"section": "", "text": text, "places": list(places(text, request.user))}
    return render(request, "find.html#places" if is_htmx(request) else "find.html", context)


def places(text: str, person: User) -> Iterator[PaletteEntry]:
    """Only what this person may open; what is named exactly stands first."""
    yield from _calls(text, person)
    yield from _pages(text, person)
    if text:
        yield from _tools(text, person)
        yield from _servers(text, person)
        yield from _agents(text, person)


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
    found = Tool.objects.filter(exposed_name__icontains=text).order_by("exposed_name")
    for tool in found.only("exposed_name", "state")[:RESULTS_MAX]:
        href = reverse("registry:tool", args=[tool.exposed_name])
        note = "" if tool.state == Tool.State.PUBLISHED else tool.get_state_display()
        yield PaletteEntry(str(_("Tool")), "tool", tool.exposed_name, href, note)


def _servers(text: str, person: User) -> Iterator[PaletteEntry]:
    if not person.has_perm("registry.view_server"):
        return
    found = Server.objects.filter(Q(slug__icontains=text) | Q(title__icontains=text))
    for server in found.order_by("slug")[:RESULTS_MAX]:
        href = reverse("registry:server", args=[server.slug])
        yield PaletteEntry(str(_("Server")), "server", server.slug, href, server.title)


def _agents(text: str, person: User) -> Iterator[PaletteEntry]:
    found = Agent.objects.visible_to(person).filter(name__icontains=text)
    for agent in found.select_related("owner").order_by("name")[:RESULTS_MAX]:
        href = reverse("accounts:agent", args=[agent.name])
        note = str(_("for {owner}")).format(owner=agent.owner.username)
        yield PaletteEntry(str(_("Agent")), "agent", agent.name, href, note)


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
