"""A tool's arguments as rows for people: what a schema asks for, and what a call gave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.schemas import recursion

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
    # Required by its schema, and put in by its server where it is missing.
    is_server_default: bool = False

    @property
    def default_label(self) -> str:
        return _("server default") if self.is_server_default else _("default")


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
    """A call's arguments in the schema's order, and those left to defaults."""

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
    left_out = [*_left_out(schema, values, schema)]
    known = [name for name in top if name in values]
    names = known + [name for name in values if name not in top]
    given = [
        g for name in names for g in _call_arguments(name, values[name], top.get(name), schema, 0)
    ]
    if len(given) > MAX_ROWS:
        # Nothing that would be sent is left out of sight: what is no row any more is JSON.
        whole = CallArgument(_("all of it, as JSON"), depth=0, type="", known=True, value=values)
        given = [*given[:MAX_ROWS], whole]
    return Arguments(given, left_out)


def _left_out(
    part: Any, values: dict[str, Any], root: Schema, at: str = ""
) -> Iterator[SchemaArgument]:
    """Missing arguments; of nested ones, only those with a default."""
    for row in _rows(part, root, depth=0, deepest=0):
        value = values.get(row.name)
        if row.name not in values and (not at or row.is_server_default):
            yield replace(row, name=at + row.name)
        elif isinstance(value, dict) and at.count(".") < MAX_DEPTH:
            inner = properties_of(resolved_in(part, root))[row.name]
            yield from _left_out(inner, value, root, f"{at}{row.name}.")


def _call_arguments(
    name: str, value: Any, part: Any, root: Schema, depth: int
) -> Iterator[CallArgument]:
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
            yield from _call_arguments(key, member, inner.get(key), root, depth + 1)


def _rows(
    part: Any, root: Schema, *, depth: int, deepest: int = MAX_DEPTH, around: tuple[int, ...] = ()
) -> Iterator[SchemaArgument]:
    """`around`: the schemas that this one stands in, which are described already."""
    resolved = resolved_in(part, root)
    around = (*around, id(resolved))
    required = resolved.get("required")
    required = required if isinstance(required, list) else []
    for name, inner in properties_of(resolved).items():
        row = row_of(name, inner, root, depth=depth, required=name in required)
        again = id(_nested(inner, root)) in around
        yield replace(row, constraints=[*row.constraints, _("recursive")]) if again else row
        if depth < deepest and not again:
            yield from _rows(_nested(inner, root), root, depth=depth + 1, around=around)


def row_of(name: str, part: Any, root: Schema, *, depth: int, required: bool) -> SchemaArgument:
    resolved = resolved_in(part, root)
    own = part if isinstance(part, dict) else {}
    described = {**resolved, **own}
    has_default = "default" in described
    return SchemaArgument(
        name=name,
        depth=depth,
        type=_type(resolved, root),
        required=required and not has_default,
        constraints=list(_constraints(resolved)),
        description=str(described.get("description") or described.get("title") or ""),
        has_default=has_default,
        default=described.get("default"),
        is_server_default=required and has_default,
    )


def _nested(part: Any, root: Schema) -> Schema:
    resolved = resolved_in(part, root)
    if isinstance(resolved.get("items"), dict):
        return resolved_in(resolved["items"], root)
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
        part = recursion.resolve(root, reference)
    return part if isinstance(part, dict) else {}


def _type(part: Schema, root: Schema, around: tuple[int, ...] = ()) -> str:
    if len(around) > MAX_DEPTH or id(part) in around:
        return _("any")
    inside = (*around, id(part))
    for union in ("anyOf", "oneOf"):
        branches = part.get(union)
        if isinstance(branches, list) and branches:
            names = [_type(resolved_in(branch, root), root, inside) for branch in branches]
            return _(" or ").join(dict.fromkeys(names))
    kind = part.get("type")
    if isinstance(kind, list):
        return _(" or ").join(str(name) for name in kind)
    if kind == "array" and isinstance(part.get("items"), dict):
        items = _type(resolved_in(part["items"], root), root, inside)
        return _("array of {type}").format(type=items)
    if isinstance(kind, str):
        return kind
    return _type_of_values(part)


def _type_of_values(part: Schema) -> str:
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if not isinstance(values, list) or not values:
        return _("any")
    return _(" or ").join(dict.fromkeys(_JSON_TYPES.get(type(value), _("any")) for value in values))


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
