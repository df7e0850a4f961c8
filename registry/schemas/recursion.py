"""Schemas that refer to themselves: which of them end, and how deep arguments can be checked.

A reference below `properties`, `items` and the like ends with the arguments. One that applies to
the very value that it stands at never does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from core.schema_keywords import MANY, NAMED, ONE

Schema = dict[str, Any]
Where = tuple[Schema, str]
# Where in a value a schema applies: to the member or item of this name or number, "" for any.
Place = tuple[str, str]

# Deeper documents are refused before they come here (core/strict_json.py).
MAX_LEVELS = 32
# Ways from one value to those in it, over all schemas.
MAX_WAYS = 20_000
_IN_PLACE = frozenset(
    {"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"}
)
_MEMBERS = frozenset(
    {"additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties"}
)
_ITEMS = frozenset({"additionalItems", "contains", "items", "prefixItems", "unevaluatedItems"})


class Endless(Exception):
    """References that lead back to where they began."""


def children(node: Schema, at: str) -> Iterator[tuple[str, str, Schema, str]]:
    """Each subschema with its keyword, its name or number there, and its place."""
    for keyword in ONE:
        if isinstance(child := node.get(keyword), dict):
            yield keyword, "", child, f"{at}/{keyword}"
    for keyword in MANY:
        if isinstance(listed := node.get(keyword), list):
            for index, child in enumerate(listed):
                if isinstance(child, dict):
                    yield keyword, str(index), child, f"{at}/{keyword}/{index}"
    for keyword in NAMED:
        if isinstance(named := node.get(keyword), dict):
            for name, child in named.items():
                if isinstance(child, dict):
                    yield keyword, name, child, f"{at}/{keyword}/{name}"


def target(root: Schema, node: Schema) -> Any:
    """The target of its reference; None if there is no reference, or no target."""
    reference = node.get("$ref")
    return resolve(root, reference) if isinstance(reference, str) else None


def resolve(root: Any, reference: str) -> Any:
    found = root
    # Percent signs first: RFC 6901, 6.
    anchor, *steps = unquote(reference.removeprefix("#")).split("/")
    if anchor:
        return None
    for step in steps:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            return None
    return found


# How often a subschema applies where in a value, by its node.
Ways = Counter[tuple[Place, int]]


class Recursion:
    """The recursion of one schema, whose references all resolve; raises Endless."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        # All that applies to the very value that a node applies to, and what applies in it.
        self._sizes: dict[int, int] = {}
        self._ways: dict[int, Ways] = {}
        self._open: set[int] = set()
        waiting, seen = [(root, "#")], set()
        while waiting:
            node, at = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                self._close(node, at)
                waiting += [(child, place) for _word, _name, child, place in children(node, at)]
                referred = target(root, node)
                waiting += [(referred, str(node["$ref"]))] if isinstance(referred, dict) else []

    @property
    def is_found(self) -> bool:
        """Whether anything in it refers to what it stands in."""
        below = {node: {child for _place, child in self._ways[node]} for node in self._begun}
        # What has nothing below it, and then what has only such below it, is taken away.
        while ends := {node for node, inner in below.items() if not inner}:
            below = {node: inner - ends for node, inner in below.items() if node not in ends}
        return bool(below)

    def levels(self, most: int) -> int | None:
        """How deep arguments may nest so that no value in them is held against more than `most`
        subschemas; None if as deep as any."""
        begun = self._begun
        if sum(len(self._ways[node]) for node in begun) > MAX_WAYS:
            return 0
        work = {node: self._sizes[node] for node in begun}
        for level in range(MAX_LEVELS):
            if work[id(self._root)] > most:
                return max(level - 1, 0)
            # A value and what is in it, at most one level deeper than before.
            before = work
            work = {node: max(self._sizes[node], self._below(node, before)) for node in begun}
            if work == before:
                break
        return None

    @cached_property
    def _begun(self) -> set[int]:
        """The nodes by which a value begins to be checked."""
        waiting, begun = [id(self._root)], set()
        while waiting:
            node = waiting.pop()
            if node not in begun:
                begun.add(node)
                waiting += [child for _place, child in self._ways[node]]
        return begun

    def _below(self, node: int, work: dict[int, int]) -> int:
        """The work of the member or item that causes most."""
        named: Counter[Place] = Counter()
        for (place, child), times in self._ways[node].items():
            named[place] += times * work[child]
        every = {kind: named.pop((kind, ""), 0) for kind in ("member", "item")}
        totals = [every[kind] + found for (kind, _name), found in named.items()]
        return max([*every.values(), *totals])

    def _close(self, node: Schema, at: str) -> None:
        if id(node) in self._sizes:
            return
        if id(node) in self._open:
            raise Endless(at)
        self._open.add(id(node))
        self._sizes[id(node)], self._ways[id(node)] = self._closed(node, at)
        self._open.remove(id(node))

    def _closed(self, node: Schema, at: str) -> tuple[int, Ways]:
        size, ways, beside = 1, self._own_ways(node, at), []
        for keyword, _name, child, place in children(node, at):
            if keyword in _IN_PLACE:
                beside.append((child, place))
        if isinstance(referred := target(self._root, node), dict):
            beside.append((referred, str(node["$ref"])))
        for other, place in beside:
            self._close(other, place)
            size += self._sizes[id(other)]
            for way, times in self._ways[id(other)].items():
                ways[way] += times
        return size, ways

    def _own_ways(self, node: Schema, at: str) -> Ways:
        ways: Ways = Counter()
        for keyword, name, child, _at in children(node, at):
            applies = id(self._referred(child))
            if keyword in _ITEMS:
                ways[("item", name), applies] += 1
            elif keyword == "properties":
                ways[("member", name), applies] += 1
            elif keyword in _MEMBERS:
                ways[("member", ""), applies] += 1
        other, named = node.get("additionalProperties"), node.get("properties")
        if isinstance(other, dict) and isinstance(named, dict):
            # Not to the members that stand beside it by their names.
            for name in named:
                ways[("member", name), id(self._referred(other))] -= 1
        return ways

    def _referred(self, node: Schema) -> Schema:
        """The target of a schema that is only a reference."""
        found = None if any(children(node, "")) else target(self._root, node)
        return found if isinstance(found, dict) else node


def depth(value: Any) -> int:
    """Levels below the value itself."""
    level, found = [value], -1
    while level:
        found += 1
        level = [
            child
            for one in level
            for child in (
                one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
            )
        ]
    return found
