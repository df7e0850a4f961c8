"""Maps the parts of a tool's schema to kinds of form fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from registry.schemas.arguments import resolved_in

Schema = dict[str, Any]

MAX_DEPTH = 5
MAX_BRANCHES = 20
TEXT, NUMBER, CHOICE, LIST, GROUP, JSON = "text", "number", "choice", "list", "group", "json"
# One of several schemas: the person says which, and fills in that one.
VARIANT = "variant"
_KINDS = {
    "string": TEXT,
    "number": NUMBER,
    "integer": NUMBER,
    "array": LIST,
    "object": GROUP,
}


@dataclass(frozen=True, slots=True)
class FieldShape:
    """The kind of a field, by its schema alone."""

    kind: str
    schema: Schema
    nullable: bool = False
    choices: list[Any] = field(default_factory=list)
    # Of a variant, without null; and what each of them is.
    branches: list[Schema] = field(default_factory=list)
    inner: list[FieldShape] = field(default_factory=list)


def shape_of(part: Any, root: Schema, depth: int) -> FieldShape:
    schema = resolved_in(part, root)
    schema, nullable = _without_null(schema, root)
    values = _values(schema)
    if values:
        return FieldShape(CHOICE, schema, choices=[*values, *([None] if nullable else [])])
    if depth > MAX_DEPTH:
        return FieldShape(JSON, schema)
    if _is_mixed(schema):
        branches, nullable = _branches(schema, root)
        inner = [shape_of(branch, root, depth + 1) for branch in branches]
        kind = VARIANT if branches else JSON
        return FieldShape(kind, schema, nullable, branches=branches, inner=inner)
    kind = _KINDS.get(_type(schema), JSON)
    if kind == LIST and (not isinstance(schema.get("items"), dict) or "prefixItems" in schema):
        kind = JSON
    if kind == GROUP and "properties" not in schema:
        kind = JSON
    return FieldShape(kind, schema, nullable)


def _without_null(schema: Schema, root: Schema) -> tuple[Schema, bool]:
    """The schema `x` of "x or null"."""
    for union in ("anyOf", "oneOf"):
        branches = schema.get(union)
        if isinstance(branches, list) and "type" not in schema:
            inner = [resolved_in(branch, root) for branch in branches]
            left = [branch for branch in inner if branch.get("type") != "null"]
            if len(left) == 1:
                return left[0], len(inner) > 1
    match schema.get("type"):
        case [*names]:
            left_names = [name for name in names if name != "null"]
            if len(left_names) == 1:
                return {**schema, "type": left_names[0]}, len(names) > 1
    match schema.get("allOf"):
        case [only] if "type" not in schema and "properties" not in schema:
            return resolved_in(only, root), False
    return schema, False


def _values(schema: Schema) -> list[Any]:
    values = schema.get("enum")
    if isinstance(values, list):
        return values
    if "const" in schema:
        return [schema["const"]]
    return [True, False] if schema.get("type") == "boolean" else []


def _is_mixed(schema: Schema) -> bool:
    return "type" not in schema and any(word in schema for word in ("anyOf", "oneOf", "allOf"))


def _branches(schema: Schema, root: Schema) -> tuple[list[Schema], bool]:
    """The branches of a schema that is only a choice between schemas; and whether null is one."""
    union = [word for word in ("anyOf", "oneOf", "allOf") if word in schema]
    branches = schema[union[0]]
    if union not in (["anyOf"], ["oneOf"]) or not isinstance(branches, list):
        return [], False
    inner = [resolved_in(branch, root) for branch in branches][:MAX_BRANCHES]
    left = [branch for branch in inner if branch.get("type") != "null"]
    return left, len(left) < len(inner)


def _type(schema: Schema) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "")
    return kind if isinstance(kind, str) else ""
