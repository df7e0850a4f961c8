"""Published resources and prompts of servers, held in memory with the tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson

from registry.models import Item, ItemVersion
from registry.publishing.uri_templates import Template

Content = Mapping[str, Any]


class ItemContent(dict[str, Any]):
    """One version of an item, equal to what has its digest: to Python, true is 1, and 1 is 1.0."""

    def __init__(self, body: bytes | str, digest: str) -> None:
        super().__init__(orjson.loads(body))
        self.digest = digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ItemContent) and self.digest == other.digest

    __hash__ = None

    def __ne__(self, other: object) -> bool:
        return not self == other


@dataclass(frozen=True, slots=True)
class PublishedItems:
    """One server's published items by key, in the server's order. Shared: never change it."""

    resources: Mapping[str, Content] = field(default_factory=dict)
    templates: Mapping[str, tuple[Template, Content]] = field(default_factory=dict)
    prompts: Mapping[str, Content] = field(default_factory=dict)
    # What it says to the models that use it.
    instructions: str = ""
    # URIs that the server lists, and that nobody has published.
    withheld: frozenset[str] = frozenset()
    reads: bool = True
    # Of changes to who subscribes.
    tells: bool = False

    def of(self, *, reads: bool, gets: bool) -> PublishedItems:
        """The items without those that agents may not read or get."""
        found = self if gets else replace(self, prompts={})
        return found if reads else replace(found, resources={}, templates={}, reads=False)

    @property
    def listed(self) -> tuple[Any, ...]:
        """To compare: what is shown of its resources and templates."""
        templates = {key: content for key, (_template, content) in self.templates.items()}
        return self.resources, templates

    @property
    def names_some(self) -> bool:
        """Whether it lists anything, published or not: else what its results link to is all."""
        return bool(self.resources or self.templates or self.withheld)

    def lists(self, uri: str) -> bool:
        return uri in self.resources

    def matches(self, uri: str) -> bool:
        return any(template.matches(uri) for template, _content in self.templates.values())


class ItemRow(NamedTuple):
    """The columns that are read of an item."""

    server_id: int
    kind: str
    key: str
    state: str
    published_id: int
    published__digest: str
    server__tells_of_updates: bool


NOTHING = PublishedItems()


class _LastRead:
    """A cache of the last load: its rows and the result."""

    loaded: tuple[list[Any], dict[int, PublishedItems]] = [], {}


# Versions never change, so what was parsed stays right: by id and digest.
_contents: dict[tuple[int, str], ItemContent] = {}


def load() -> dict[int, PublishedItems]:
    """All published items by server. Later loads make only what changed."""
    rows = list(
        Item.objects.filter(server__enabled=True)
        .exclude(state=Item.State.RETIRED)
        .order_by("id")
        .values_list(*ItemRow._fields)
    )
    before, loaded = _LastRead.loaded
    if rows != before:
        loaded = _by_server([ItemRow._make(row) for row in rows])
        _LastRead.loaded = rows, loaded
    return loaded


def _by_server(lines: list[ItemRow]) -> dict[int, PublishedItems]:
    shown = [line for line in lines if line.state == Item.State.PUBLISHED]
    contents = _parsed({(line.published_id, line.published__digest) for line in shown})
    shelves: dict[int, dict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for line in shown:
        shelves[line.server_id][line.kind][line.key] = contents[line.published_id]
    withheld: dict[int, set[str]] = defaultdict(set)
    for line in lines:
        if line.state != Item.State.PUBLISHED and line.kind == Item.Kind.RESOURCE:
            withheld[line.server_id].add(line.key)
    return {
        server_id: _offered(shelves[server_id], withheld[server_id], tells)
        for server_id, tells in {(line.server_id, line.server__tells_of_updates) for line in lines}
    }


def _offered(
    shelves: Mapping[str, dict[str, Any]], withheld: set[str], tells: bool
) -> PublishedItems:
    return PublishedItems(
        resources=shelves.get(Item.Kind.RESOURCE, {}),
        templates=_templates(shelves.get(Item.Kind.TEMPLATE, {})),
        prompts=shelves.get(Item.Kind.PROMPT, {}),
        instructions=_instructions(shelves.get(Item.Kind.INSTRUCTIONS, {})),
        withheld=frozenset(withheld),
        tells=tells,
    )


def _instructions(contents: Mapping[str, Content]) -> str:
    return "".join(str(content.get("text", "")) for content in contents.values())


def _templates(contents: Mapping[str, Content]) -> dict[str, tuple[Template, Content]]:
    return {key: (Template(key), content) for key, content in contents.items()}


def _parsed(wanted: set[tuple[int, str]]) -> dict[int, ItemContent]:
    # Another thread may forget at any moment: what this load needs, it holds itself.
    held = {key: content for key in wanted if (content := _contents.get(key))}
    fresh = ItemVersion.objects.filter(pk__in=[pk for pk, _ in wanted - held.keys()])
    for pk, digest, body in fresh.values_list("pk", "digest", "body"):
        held[pk, digest] = ItemContent(body, digest)
    _contents.update(held)
    for key in set(_contents) - wanted:
        _contents.pop(key, None)
    return {pk: content for (pk, _digest), content in held.items()}
