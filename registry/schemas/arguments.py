"""A tool's arguments as rows for people: what a schema asks for, and what a call gave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

Schema = dict[str, Any]

# A schema may nest and refer to itself without end; a table may not.
MAX_DEPTH = 4
MAX_ROWS = 300


@dataclass(frozen=True, slots=True)
class SchemaArgument:
    """One argument: what the schema says of it."""

    name: str
    depth: int
    type: str
    required: bool
    constraints: list[str]
    description: str
    has_default: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class CallArgument:
    """One argument of a call, with what the schema says of it if it says anything."""

    name: str
    depth: int
    type: str
    known: bool
    value: Any = None
    # Of an object whose members follow, one deeper.
    members: int = 0

    @property
    def is_group(self) -> bool:
        return bool(self.members)


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call gave, in the schema's order, and what it left to defaults."""

    given: list[CallArgument] = field(default_factory=list)
    left_out: list[SchemaArgument] = field(default_factory=list)


def rows(schema: Schema) -> list[SchemaArgument]:
    """The arguments that `schema` describes, nested ones one deeper than their parent."""
    found = []
    for row in _rows(schema, schema, depth=0):
        found.append(row)
        if len(found) == MAX_ROWS:
            break
    return found


def arguments(schema: Schema, values: Any) -> Arguments:
    if not isinstance(values, dict):
        return Arguments([CallArgument(name="", depth=0, type="", known=False, value=values)])
    top = properties_of(resolved_in(schema, schema))
    left_out = [row for row in rows(schema) if row.depth == 0 and row.name not in values]
    known = [name for name in top if name in values]
    names = known + [name for name in values if name not in top]
    given = [g for name in names for g in _given(name, values[name], top.get(name), schema, 0)]
    if len(given) > MAX_ROWS:
        # Nothing that would be sent is left out of sight: what is no row any more is JSON.
        whole = CallArgument(_("all of it, as JSON"), depth=0, type="", known=True, value=values)
        given = [*given[:MAX_ROWS], whole]
    return Arguments(given, left_out)


def _given(name: str, value: Any, part: Any, root: Schema, depth: int) -> Iterator[CallArgument]:
    resolved = resolved_in(part, root)
    is_group = isinstance(value, dict) and bool(value) and depth < MAX_DEPTH
    yield CallArgument(
        name=name,
        depth=depth,
        type=_type(resolved, root),
        known=part is not None,
        value=None if is_group else value,
        members=len(value) if is_group else 0,
    )
    if is_group:
        inner = properties_of(resolved)
        for key, member in value.items():
            yield from _given(key, member, inner.get(key), root, depth + 1)


def _rows(part: Any, root: Schema, *, depth: int) -> Iterator[SchemaArgument]:
    resolved = resolved_in(part, root)
    required = resolved.get("required")
    required = required if isinstance(required, list) else []
    for name, inner in properties_of(resolved).items():
        yield row_of(name, inner, root, depth=depth, required=name in required)
        if depth < MAX_DEPTH:
            yield from _rows(_nested(inner, root), root, depth=depth + 1)


def row_of(name: str, part: Any, root: Schema, *, depth: int, required: bool) -> SchemaArgument:
    resolved = resolved_in(part, root)
    own = part if isinstance(part, dict) else {}
    described = {**resolved, **own}
    return SchemaArgument(
        name=name,
        depth=depth,
        type=_type(resolved, root),
        required=required,
        constraints=list(_constraints(resolved)),
        description=str(described.get("description") or described.get("title") or ""),
        has_default="default" in described,
        default=described.get("default"),
    )


def _nested(part: Any, root: Schema) -> Any:
    resolved = resolved_in(part, root)
    if isinstance(resolved.get("items"), dict):
        return resolved["items"]
    return resolved


def properties_of(part: Schema) -> dict[str, Any]:
    properties = part.get("properties")
    return properties if isinstance(properties, dict) else {}


def resolved_in(part: Any, root: Schema) -> Schema:
    """The schema itself, or what its `$ref` within the document points to."""
    for _hop in range(MAX_DEPTH):
        if not isinstance(part, dict):
            return {}
        reference = part.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return part
        part = _at(root, reference[1:])
    return part if isinstance(part, dict) else {}


def _at(root: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        root = root.get(key) if isinstance(root, dict) else None
    return root


def _type(part: Schema, root: Schema, depth: int = 0) -> str:
    if depth > MAX_DEPTH:
        return _("any")
    for union in ("anyOf", "oneOf"):
        branches = part.get(union)
        if isinstance(branches, list) and branches:
            names = [_type(resolved_in(branch, root), root, depth + 1) for branch in branches]
            return _(" or ").join(dict.fromkeys(names))
    kind = part.get("type")
    if isinstance(kind, list):
        return _(" or ").join(str(name) for name in kind)
    if kind == "array" and isinstance(part.get("items"), dict):
        items = _type(resolved_in(part["items"], root), root, depth + 1)
        return _("array of {type}").format(type=items)
    if isinstance(kind, str):
        return kind
    return _type_of_values(part)


def _type_of_values(part: Schema) -> str:
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if not isinstance(values, list) or not values:
        return _("any")
    return _(" or ").join(dict.fromkeys(_JSON_TYPES.get(type(value), "any") for value in values))


_JSON_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


# Sentences after the schema's words, in the order in which they are shown.
_LIMITS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": gettext_lazy("a multiple of {}"),
    "minLength": gettext_lazy("length ≥ {}"),
    "maxLength": gettext_lazy("length ≤ {}"),
    "minItems": gettext_lazy("items ≥ {}"),
    "maxItems": gettext_lazy("items ≤ {}"),
    "pattern": gettext_lazy("matches {}"),
    "format": gettext_lazy("format {}"),
    "const": gettext_lazy("exactly {}"),
}


def _constraints(part: Schema) -> Iterator[str]:
    values = part.get("enum")
    if isinstance(values, list):
        yield _("one of {list}").format(list=", ".join(as_words(value) for value in values))
    for word, sentence in _LIMITS.items():
        if word in part:
            yield str(sentence).format(as_words(part[word]))
    if part.get("uniqueItems") is True:
        yield _("no two alike")
    if part.get("additionalProperties") is False:
        yield _("no other members")


def as_words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
