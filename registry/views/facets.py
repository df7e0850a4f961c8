"""The catalogue's facets: what to narrow by, each choice a link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, QuerySet, TextField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.models import Server, Tag, Tool
from registry.views import catalogue_search as search

# The other hints are what the risk is made of, and found by it.
HINTS = [
    ("open", gettext_lazy("open-world")),
    ("repeats", gettext_lazy("idempotent")),
]
STATES = [
    ("unpublished", gettext_lazy("Needs review")),
    (Tool.State.PUBLISHED, Tool.State.PUBLISHED.label),
    (Tool.State.NEW, Tool.State.NEW.label),
    (Tool.State.CHANGED, Tool.State.CHANGED.label),
    (Tool.State.RETIRED, Tool.State.RETIRED.label),
]
USED = [("yes", gettext_lazy("Used")), ("no", gettext_lazy("Not used"))]
# The names of all facets, as they stand in the address.
NAMES = ("server", "risk", "hint", "state", "owner", "tag", "toolset", "used")
# What is counted, by its column.
COLUMNS = {
    "state": "state",
    "risk": "risk",
    "server": "server__slug",
    "owner": "server__owner__username",
    "tag": "tags__name",
}
# So many toolsets have counts: each is a count of its own.
TOOLSETS_COUNTED = 20


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    label: Any
    chosen: bool
    # How many tools it would leave; None where that is not counted.
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Facet:
    name: str
    title: str
    choices: list[Choice]

    @property
    def chosen(self) -> Choice | None:
        return next((choice for choice in self.choices if choice.chosen), None)


Counts = Mapping[tuple[str, str], int]


def facets(filters: Mapping[str, str], counts: Counts, toolsets: list[str]) -> list[Facet]:
    """The facets that have something to choose."""
    servers = list(Server.objects.kept().values_list("slug", "owner__username"))
    owners = sorted({owner for _slug, owner in servers})
    offered: list[tuple[str, Any, Iterable[tuple[str, Any]]]] = [
        ("risk", _("Claimed risk"), Tool.Risk.choices),
        ("hint", _("Other claims"), HINTS),
        ("state", _("State"), STATES),
        ("used", _("In the last 30 days"), USED),
        ("tag", _("Tag"), _choices(Tag.objects.values_list("name", flat=True))),
        ("toolset", _("Toolset"), _choices(toolsets)),
        ("server", _("Server"), _choices(slug for slug, _owner in servers)),
        ("owner", _("Owner of the server"), _choices(owners)),
    ]
    counted = {*COLUMNS, *(["toolset"] if len(toolsets) <= TOOLSETS_COUNTED else [])}
    made = [
        _facet(name, title, choices, filters, counts if name in counted else None)
        for name, title, choices in offered
    ]
    return [facet for facet in made if facet.choices]


def count(filters: Mapping[str, str], toolsets: list[str]) -> dict[tuple[str, str], int]:
    """By facet and choice, how many tools it leaves of those that all other filters leave."""
    fitting = search.fitting(filters)
    parts = [_counted(fitting, filters, name, F(column)) for name, column in COLUMNS.items()]
    if len(toolsets) <= TOOLSETS_COUNTED:
        parts += [
            _counted(fitting, {**filters, "toolset": slug}, "", Value(slug)) for slug in toolsets
        ]
    rows = list(parts[0].union(*parts[1:], all=True))
    counts = {(facet or "toolset", choice): n for facet, choice, n in rows if choice}
    waiting = (counts.get(("state", state), 0) for state in (Tool.State.NEW, Tool.State.CHANGED))
    return {**counts, ("state", "unpublished"): sum(waiting)}


def _counted(
    fitting: QuerySet[Tool], filters: Mapping[str, str], name: str, choice: Combinable
) -> QuerySet[Tool, Any]:
    """The counts of a facet's choices; one count where no facet is named."""
    others = {**filters, name: search.EVERY if name == "state" else ""}
    found = search.faceted(fitting, {key: str(value) for key, value in others.items()})
    named = found.annotate(facet=Value(name, TextField()), choice=Cast(choice, TextField())).values(
        "facet", "choice"
    )
    return named.annotate(n=Count("pk")).values_list("facet", "choice", "n")


def _facet(
    name: str,
    title: str,
    choices: Iterable[tuple[str, Any]],
    filters: Mapping[str, str],
    counts: Counts | None,
) -> Facet:
    given = filters.get(name, "")
    return Facet(
        name,
        title,
        [
            Choice(
                value,
                label,
                value == given,
                None if counts is None else counts.get((name, value), 0),
            )
            for value, label in choices
        ],
    )


def _choices(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in values]
