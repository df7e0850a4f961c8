"""The fields of a whole schema, drawn from one source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from registry.schema_forms.fields import Field
from registry.schema_forms.shapes import GROUP, JSON, LIST, VARIANT, FieldShape, Schema, shape_of
from registry.schema_forms.sources import EMPTY, OUT, Source
from registry.schemas.arguments import SchemaArgument, properties_of, row_of

MAX_FIELDS = 250


class TooMany(Exception):
    """More fields than a person would fill in."""


class Builder:
    """Draws the fields of one schema from one source."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MAX_FIELDS

    def whole(self, source: Source) -> Field:
        """Raises TooMany."""
        row = row_of("", self._root, self._root, depth=0, required=True)
        return self._field("f", (), row, self._root, source, ())

    def _field(
        self,
        key: str,
        path: tuple[str | int, ...],
        row: SchemaArgument,
        part: Any,
        source: Source,
        around: tuple[int, ...],
        *,
        is_item: bool = False,
    ) -> Field:
        """`around`: the schemas that its field stands in, since the last list, whose items are only
        as many as are asked for. What refers to one of them again is held as JSON."""
        self._left -= 1
        if self._left < 0:
            raise TooMany
        shape = shape_of(part, self._root, len(around))
        if id(shape.schema) in around:
            shape = FieldShape(JSON, shape.schema)
        around = (*around, id(shape.schema))
        kind = source.kind(shape)
        made = Field(key, path, row, kind, shape, source.text(shape, kind), is_item=is_item)
        made.empty = source.empty() or _default_empty(made)
        if kind == GROUP:
            made.children = list(self._members(made, source, around))
        elif kind == LIST:
            made.children = list(self._items(made, source, around))
        elif kind == VARIANT:
            self._vary(made, source, around)
        return made

    def _vary(self, of: Field, source: Source, around: tuple[int, ...]) -> None:
        rows = [
            row_of("", part, self._root, depth=len(around) - 1, required=True)
            for part in of.shape.branches
        ]
        of.variants = [_named(row, part) for row, part in zip(rows, of.shape.branches, strict=True)]
        if of.shape.nullable:
            of.variants.append("null")
        of.chosen = source.which(of.shape.inner)
        if of.chosen is None and (of.row.required or of.is_item):
            of.chosen = 0
        n = of.chosen
        if n is not None and n < len(of.shape.branches):
            key, part = f"{of.key}.v{n}", of.shape.branches[n]
            of.children = [self._field(key, of.path, rows[n], part, source.branch(n), around)]

    def _members(self, group: Field, source: Source, around: tuple[int, ...]) -> Iterator[Field]:
        schema, depth = group.shape.schema, len(around) - 1
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        names = list(properties_of(schema))
        for n, (name, part) in enumerate(properties_of(schema).items()):
            row = row_of(name, part, self._root, depth=depth, required=name in required)
            key, path = f"{group.key}.{n}", (*group.path, name)
            yield self._field(key, path, row, part, source.member(name, n), around)
        others = source.others(names)
        written = others.text(FieldShape(JSON, {}), JSON)
        if written or isinstance(schema.get("additionalProperties"), dict):
            row = SchemaArgument(_("other members"), depth, "object", False, [], "")
            rest = Field(f"{group.key}.r", group.path, row, JSON, FieldShape(JSON, {}), written)
            rest.is_rest = True
            yield rest

    def _items(self, of: Field, source: Source, around: tuple[int, ...]) -> Iterator[Field]:
        part = of.shape.schema["items"]
        for n, item in enumerate(source.items()):
            row = row_of(str(n + 1), part, self._root, depth=len(around) - 1, required=True)
            key, path = f"{of.key}.{n}", (*of.path, n)
            yield self._field(key, path, row, part, item, (0,) * len(around), is_item=True)


def _named(row: SchemaArgument, part: Schema) -> str:
    """The label of a branch: its title, or what distinguishes it, or its type."""
    constants = [
        str(inner["const"])
        for inner in properties_of(part).values()
        if isinstance(inner, dict) and isinstance(inner.get("const"), str)
    ]
    title = part.get("title")
    return str(title) if title else (", ".join(constants) or row.type)


def _default_empty(made: Field) -> str:
    whole = not made.path or made.row.required or made.is_item
    return EMPTY if whole and (made.kind in (LIST, GROUP) or made.is_item) else OUT
