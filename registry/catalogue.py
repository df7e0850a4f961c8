"""What the catalogue's filters mean."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Count, F, Func, Q, QuerySet, TextField

from registry.models import Server, Tool

# What a server says of its tool, by the filter's name: the hint, and what it must say.
HINTS = {
    "reads": ("readOnlyHint", "true"),
    "destructive": ("destructiveHint", "true"),
    "open": ("openWorldHint", "true"),
    "repeats": ("idempotentHint", "true"),
}


class Hint(Func):
    """One annotation of a definition. As json, not jsonb, which cannot hold a NUL elsewhere."""

    template = "(%(expressions)s::json #>> '{annotations,%(hint)s}')"
    output_field = TextField()


def tools(filters: Mapping[str, str]) -> QuerySet[Tool]:
    found = Tool.objects.for_catalogue()
    if words := filters.get("q", "").split():
        for word in words:
            found = found.filter(Q(exposed_name__icontains=word) | Q(latest__body__icontains=word))
    if server := filters.get("server"):
        found = found.filter(server__slug=server)
    if hint := HINTS.get(filters.get("hint", "")):
        name, value = hint
        found = found.annotate(hint=Hint(F("latest__body"), hint=name)).filter(hint=value)
    return _in_state(found, filters.get("state", ""))


def _in_state(found: QuerySet[Tool], state: str) -> QuerySet[Tool]:
    if state == "unpublished":
        return found.filter(state__in=[Tool.State.NEW, Tool.State.CHANGED])
    if state in Tool.State.values:
        return found.filter(state=state)
    # What is gone from its server is found only by asking for it.
    return found.exclude(state=Tool.State.RETIRED)


def servers() -> QuerySet[Server]:
    return Server.objects.annotate(
        offered=Count("tools", filter=~Q(tools__state=Tool.State.RETIRED)),
        published=Count("tools", filter=Q(tools__state=Tool.State.PUBLISHED)),
    ).order_by("slug")
