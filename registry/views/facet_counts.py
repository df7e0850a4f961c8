"""How many tools each choice of the catalogue's facets would leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Value

from registry.models import Tag, Tool, Toolset
from registry.versions.search_index import HINTS
from registry.views import catalogue_search as search

# By facet and choice. A choice is counted with the choices of all other facets, not of its own.
Counts = dict[tuple[str, str], int]
# Key, slug and owner of each server.
Servers = list[tuple[int, str, str]]
Asked = Mapping[str, Q]
Cell = dict[str, Any]
# What the cells of the count are by themselves, and what is counted within each of them.
OF_CELLS = ("state", "risk", "server", "owner", "toolset")
WITHIN = [("used", "yes"), ("used", "no"), ("kind", "tool"), ("kind", "method")]
WITHIN += [("hint", name) for name in HINTS]
# More toolsets than these have no counts: their servers are added up here.
TOOLSETS_COUNTED = 50


def count(filters: Mapping[str, str], servers: Servers, toolsets: list[str]) -> Counts:
    """All tags are among them; toolsets are while there are few."""
    asked, fitting = search.conditions(filters), search.fitting(filters)
    cells = _cells(fitting, asked)
    counts: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        counts.update(_of_cell(cell))
    counts.update(_of_servers(cells, servers))
    counts.update(_of_tags(fitting.filter(_others(asked, "tag"))))
    if toolsets and len(toolsets) <= TOOLSETS_COUNTED:
        matched = fitting.filter(_others(asked, "toolset"))
        counts.update(_of_toolsets(_by_server(cells, "toolset"), matched))
    return {**counts, ("state", "unpublished"): _count_waiting(counts)}


def _others(asked: Asked, name: str) -> Q:
    return Q(*(condition for facet, condition in asked.items() if facet != name))


def _cells(fitting: QuerySet[Tool], asked: Asked) -> list[Cell]:
    """All tools are read once. The database counts equal columns once too."""
    columns = {f"of_{name}": Count("pk", filter=_others(asked, name)) for name in OF_CELLS}
    for name, value in WITHIN:
        condition = search.conditions({name: value})[name]
        within = Count("pk", filter=_others(asked, name) & condition)
        columns[f"of_{name}_{value}"] = within
    rows: Iterable[Any] = fitting.values("server_id", "state", "risk").annotate(**columns)
    return list(rows)


def _of_cell(cell: Cell) -> Counts:
    own = {(name, str(cell[name])): cell[f"of_{name}"] for name in ("state", "risk")}
    return own | {(name, value): cell[f"of_{name}_{value}"] for name, value in WITHIN}


def _by_server(cells: list[Cell], name: str) -> Counter[int]:
    found: Counter[int] = Counter()
    for cell in cells:
        found[cell["server_id"]] += cell[f"of_{name}"]
    return found


def _of_servers(cells: list[Cell], servers: Servers) -> Counts:
    of_server, of_owner = _by_server(cells, "server"), _by_server(cells, "owner")
    counts: Counter[tuple[str, str]] = Counter()
    for pk, slug, owner in servers:
        counts["server", slug] = of_server[pk]
        counts["owner", owner] += of_owner[pk]
    return counts


def _of_tags(matched: QuerySet[Tool]) -> Counts:
    tags = Tag.objects.annotate(n=Count("tools", filter=Q(tools__in=matched.values("pk"))))
    return {("tag", name): n for name, n in tags.values_list("name", "n")}


def _of_toolsets(by_server: Mapping[int, int], matched: QuerySet[Tool]) -> Counts:
    """Whole servers count with their own number, single tools unless their server is in it too."""
    whole = Toolset.servers.through.objects.order_by()
    of_whole = whole.filter(toolset=OuterRef("toolset"), server=OuterRef("tool__server"))
    single = Toolset.tools.through.objects.filter(tool__in=matched.values("pk"))
    alone = single.filter(~Exists(of_whole)).values("toolset__slug").annotate(n=Count("pk"))
    rows: Iterable[tuple[str, int, int]] = whole.values_list(
        "toolset__slug", "server_id", Value(0)
    ).union(alone.values_list("toolset__slug", Value(0), "n"), all=True)
    counts: Counter[tuple[str, str]] = Counter()
    for slug, server, n in rows:
        counts["toolset", slug] += n or by_server[server]
    return counts


def _count_waiting(counts: Mapping[tuple[str, str], int]) -> int:
    return sum(counts["state", state] for state in (Tool.State.NEW, Tool.State.CHANGED))
