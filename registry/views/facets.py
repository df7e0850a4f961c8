"""The catalogue's facets: what to narrow by, each choice a link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.models import Tool
from registry.views.facet_counts import TOOLSETS_COUNTED, Counts, Servers

# The other hints are what the risk is made of, and found by it.
HINTS = [
    ("open", gettext_lazy("Open-world")),
    ("repeats", gettext_lazy("Idempotent")),
]
STATES = [
    ("unpublished", gettext_lazy("Needs review")),
    (Tool.State.PUBLISHED, Tool.State.PUBLISHED.label),
    (Tool.State.NEW, Tool.State.NEW.label),
    (Tool.State.CHANGED, Tool.State.CHANGED.label),
    (Tool.State.RETIRED, Tool.State.RETIRED.label),
]
USED = [("yes", gettext_lazy("Used")), ("no", gettext_lazy("Not used"))]
KINDS = [("tool", gettext_lazy("Tools")), ("method", gettext_lazy("Resources and prompts"))]
# The names of all facets, as they stand in the address.
NAMES = ("kind", "server", "risk", "hint", "state", "owner", "tag", "toolset", "used")
# So many choices of a facet stand on the page, and so many where all of it was asked for.
SHOWN = 8
WHOLE_MAX = 200


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
    chosen: Choice | None
    # How many choices there are, and how many of them have the text that they are searched for.
    total: int
    found: int
    is_whole: bool

    @property
    def is_cut(self) -> bool:
        return len(self.choices) < self.total


def facets(
    filters: Mapping[str, str],
    counts: Counts,
    servers: Servers,
    toolsets: list[str],
    *,
    is_use_measured: bool,
) -> list[Facet]:
    """The facets that have something to choose."""
    tags = [value for name, value in counts if name == "tag"]
    offered: list[tuple[str, Any, Iterable[tuple[str, Any]]]] = [
        ("kind", _("Kind"), KINDS if filters.get("kind") or counts.get(("kind", "method")) else []),
        ("risk", _("Claimed risk"), Tool.Risk.choices),
        ("hint", _("Other claims"), HINTS),
        ("state", _("State"), STATES),
        ("used", _("In the last 30 days"), USED if is_use_measured or filters.get("used") else []),
        ("server", _("Server"), _named(slug for _pk, slug, _owner in servers)),
        ("owner", _("Owner of the server"), _named(owner for _pk, _slug, owner in servers)),
        ("tag", _("Tag"), _named(tags)),
        ("toolset", _("Toolset"), _named(toolsets)),
    ]
    uncounted = {"toolset"} if len(toolsets) > TOOLSETS_COUNTED else set()
    made = [
        _facet(name, title, _choices(name, choices, filters, None if name in uncounted else counts))
        for name, title, choices in offered
    ]
    return [_cut_choices(facet, filters) for facet in made if facet.choices]


def _facet(name: str, title: str, choices: list[Choice]) -> Facet:
    chosen = next((choice for choice in choices if choice.chosen), None)
    return Facet(name, title, choices, chosen, len(choices), len(choices), is_whole=False)


def _choices(
    name: str,
    choices: Iterable[tuple[str, Any]],
    filters: Mapping[str, str],
    counts: Counts | None,
) -> list[Choice]:
    given = filters.get(name, "")
    return [
        Choice(
            value,
            label,
            value == given,
            None if counts is None else counts.get((name, value), 0),
        )
        for value, label in choices
    ]


def _cut_choices(facet: Facet, filters: Mapping[str, str]) -> Facet:
    """The most frequent choices and the chosen one, or all of them by name."""
    if facet.total <= SHOWN:
        return facet
    if filters.get("all") != facet.name:
        return replace(facet, choices=_most_frequent(facet.choices))
    text = filters.get("within", "").strip().lower()
    found = [choice for choice in facet.choices if text in choice.value.lower()]
    return replace(facet, choices=found[:WHOLE_MAX], found=len(found), is_whole=True)


def _most_frequent(choices: list[Choice]) -> list[Choice]:
    first = sorted(choices, key=lambda choice: (not choice.chosen, -(choice.count or 0)))[:SHOWN]
    return sorted(first, key=lambda choice: -(choice.count or 0))


def _named(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in sorted(set(values))]
