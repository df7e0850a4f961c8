"""The catalogue's facets: what to narrow by, each choice a link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.models import Server, Tag, Tool

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
NAMES = ("server", "risk", "hint", "state", "owner", "tag", "used")


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    label: Any
    chosen: bool


@dataclass(frozen=True, slots=True)
class Facet:
    name: str
    title: str
    choices: list[Choice]

    @property
    def chosen(self) -> Choice | None:
        return next((choice for choice in self.choices if choice.chosen), None)


def facets(filters: Mapping[str, str]) -> list[Facet]:
    """The facets that have something to choose."""
    servers = list(Server.objects.values_list("slug", "owner__username"))
    owners = sorted({owner for _slug, owner in servers})
    offered: list[tuple[str, Any, Iterable[tuple[str, Any]]]] = [
        ("risk", _("Claimed risk"), Tool.Risk.choices),
        ("hint", _("Other claims"), HINTS),
        ("state", _("State"), STATES),
        ("used", _("In the last 30 days"), USED),
        ("tag", _("Tag"), _choices(Tag.objects.values_list("name", flat=True))),
        ("server", _("Server"), _choices(slug for slug, _owner in servers)),
        ("owner", _("Owner of the server"), _choices(owners)),
    ]
    made = [_facet(name, title, choices, filters) for name, title, choices in offered]
    return [facet for facet in made if facet.choices]


def _facet(
    name: str, title: str, choices: Iterable[tuple[str, Any]], filters: Mapping[str, str]
) -> Facet:
    given = filters.get(name, "")
    return Facet(name, title, [Choice(value, label, value == given) for value, label in choices])


def _choices(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in values]
