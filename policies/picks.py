"""Suggestions of a form while a name of a server or a tool is typed: few of many, with numbers."""

from __future__ import annotations

from typing import NamedTuple

from django.db.models import Count, Q
from django.utils.translation import gettext, ngettext

from registry.models import HAS_METHOD, Server, Tool

MOST = 50
WILD = "*?[]"


class Pick(NamedTuple):
    value: str
    label: str


def servers(typed: str) -> list[Pick]:
    """Servers with this in their names, each with the number of its published tools."""
    is_shown = Q(tools__state=Tool.State.PUBLISHED) & ~HAS_METHOD
    published = Count("tools", filter=is_shown)
    found = (
        Server.objects.kept().filter(slug__icontains=_plain(typed)).annotate(published=published)
    )
    rows = found.order_by("slug").values_list("slug", "published")[:MOST]
    return [Pick(slug, _tools(number)) for slug, number in rows]


def _tools(number: int) -> str:
    said = ngettext("%(n)d published tool", "%(n)d published tools", number)
    return said % {"n": number}


def tools(typed: str, server: str) -> list[Pick]:
    """Published tools with this in their names, by the names that servers give them."""
    found = Tool.objects.filter(state=Tool.State.PUBLISHED, name__icontains=_plain(typed))
    if server and not any(sign in server for sign in WILD):
        found = found.filter(server__slug=server)
    rows = found.order_by("name").values_list("name").annotate(Count("server"))[:MOST]
    return [Pick(name, _servers(number)) for name, number in rows]


def _servers(number: int) -> str:
    said = ngettext("of %(n)d server", "of %(n)d servers", number)
    return said % {"n": number}


def exposed_tools(typed: str) -> list[Pick]:
    """Published tools of servers that are on, by the names that agents and people use."""
    on = Tool.objects.filter(state=Tool.State.PUBLISHED, server__enabled=True)
    found = on.filter(exposed_name__icontains=typed).order_by("exposed_name")
    rows = found.values_list("exposed_name", "risk")[:MOST]
    risks = dict(Tool.Risk.choices)
    return [Pick(name, str(risks.get(risk, gettext("Not declared")))) for name, risk in rows]


def _plain(typed: str) -> str:
    """The part of a pattern before its first sign, as it is in names."""
    for n, letter in enumerate(typed):
        if letter in WILD:
            return typed[:n]
    return typed
