"""A tool's schema as fields that a plain HTML form can hold, without a type getting lost.

A field is drawn from a value or from what was posted, and gives a value back. What a field cannot
hold exactly (a choice of types, text in which characters hide) it holds as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.utils.translation import gettext as _

from core import strict_json, text
from core.exact_json import ABSENT, Number, exact, loads, number, pretty
from registry.arguments import Row, as_words, properties_of, resolved_in, row_of
from registry.violations import json_path

Schema = dict[str, Any]

MAX_DEPTH = 5
MAX_ITEMS = 50
MAX_FIELDS = 250
MAX_BRANCHES = 20
# What an empty field stands for.
OUT, EMPTY, NULL = "out", "empty", "null"
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
_LINE = 120
EXAMPLES = 8
_is_date = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch


class TooMany(Exception):
    """More fields than a person would fill in."""


class Source(Protocol):
    """Where a field's content comes from."""

    def kind(self, shape: Shape) -> str: ...
    def text(self, shape: Shape, kind: str) -> str: ...
    def empty(self) -> str: ...
    def items(self) -> list[Source]: ...
    def member(self, name: str, index: int) -> Source: ...
    def others(self, names: list[str]) -> Source: ...
    def which(self, branches: list[Shape]) -> int | None: ...
    def branch(self, index: int) -> Source: ...


@dataclass(frozen=True, slots=True)
class Shape:
    """What a field is, by its schema alone."""

    kind: str
    schema: Schema
    nullable: bool = False
    choices: list[Any] = field(default_factory=list)
    # Of a variant, without null; and what each of them is.
    branches: list[Schema] = field(default_factory=list)
    inner: list[Shape] = field(default_factory=list)


@dataclass(slots=True)
class Field:
    """`key` is its name in HTML; `path` where its value stands in the document."""

    key: str
    path: tuple[str | int, ...]
    row: Row
    kind: str
    shape: Shape
    text: str = ""
    empty: str = OUT
    children: list[Field] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    # Of a variant: what there is to choose from, and what was chosen, if anything was.
    variants: list[str] = field(default_factory=list)
    chosen: int | None = None
    is_item: bool = False
    # Members of an object that its schema does not name.
    is_rest: bool = False
    # The form was drawn anew because this field was asked for.
    is_new: bool = False

    @property
    def json_path(self) -> str:
        return json_path(self.path)

    @property
    def id(self) -> str:
        return "field-" + self.key.replace(".", "-")

    @property
    def one_line(self) -> bool:
        longest = self.shape.schema.get("maxLength")
        short = isinstance(longest, int) and longest <= _LINE
        return (short or "format" in self.shape.schema) and "\n" not in self.text

    @property
    def input_type(self) -> str:
        """A calendar only where it can hold what there is."""
        is_date = self.shape.schema.get("format") == "date"
        return "date" if is_date and (not self.text or _is_date(self.text)) else "text"

    @property
    def takes_file(self) -> bool:
        """Text that stands for bytes: a browser with scripts fills it in from a file."""
        schema = self.shape.schema
        encoded = schema.get("contentEncoding") == "base64"
        return self.kind == TEXT and (encoded or schema.get("format") in ("byte", "base64"))

    @property
    def examples(self) -> list[str]:
        given = self.shape.schema.get("examples")
        shown = [as_words(value) for value in given] if isinstance(given, list) else []
        return [example for example in shown if not text.hidden_count(example)][:EXAMPLES]

    @property
    def options(self) -> list[tuple[str, str]]:
        if self.kind == VARIANT:
            return [(str(n), name) for n, name in enumerate(self.variants)]
        return [(str(n), as_words(value)) for n, value in enumerate(self.shape.choices)]

    @property
    def ways(self) -> list[tuple[str, str]]:
        """What an empty field may stand for."""
        if self.kind in (CHOICE, JSON, VARIANT):
            return []
        nothing = {TEXT: _("an empty text"), LIST: _("an empty list"), GROUP: _("an empty object")}
        ways = [] if self.is_item else [(OUT, _("left out"))]
        if self.kind in nothing:
            ways.append((EMPTY, nothing[self.kind]))
        return [*ways, (NULL, "null")] if self.shape.nullable else ways

    @property
    def is_list(self) -> bool:
        return self.kind == LIST

    def every(self) -> Iterator[Field]:
        yield self
        for child in self.children:
            yield from child.every()

    def value(self) -> Any:
        """ABSENT when the field is left out; notes errors where there is no value."""
        try:
            found = self._value()
        except strict_json.Ambiguous as error:
            self.errors.append(str(error))
            return ABSENT
        if found is ABSENT and self.is_item and not self.errors:
            self.errors.append(_("An item needs a value; or remove it."))
        return found

    def _value(self) -> Any:
        match self.kind:
            case "group":
                return self._members() or self._nothing({})
            case "list":
                return [child.value() for child in self.children] or self._nothing([])
            case "text":
                return self.text or self._nothing("")
            case "number":
                written = self.text.strip()
                return number(written) if written else self._nothing(ABSENT)
            case "choice":
                return self._chosen()
            case "variant":
                return self._of_variant()
            case _:
                return loads(self.text.encode()) if self.text.strip() else ABSENT

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for child in self.children:
            found = child.value()
            if child.is_rest:
                self._add_others(members, found, child)
            elif found is not ABSENT:
                members[str(child.path[-1])] = found
        return members

    def _add_others(self, members: dict[str, Any], found: Any, rest: Field) -> None:
        if found is ABSENT:
            return
        named = {str(child.path[-1]) for child in self.children if not child.is_rest}
        if not isinstance(found, dict):
            rest.errors.append(_("This has to be a JSON object."))
        elif twice := sorted(named & found.keys()):
            rest.errors.append(_("“%s” has a field of its own: fill in that one.") % twice[0])
        else:
            members |= found

    def _chosen(self) -> Any:
        if not self.text.isdecimal() or int(self.text) >= len(self.shape.choices):
            return ABSENT
        return exact(self.shape.choices[int(self.text)])

    def _of_variant(self) -> Any:
        if self.chosen == len(self.variants) - 1 and self.shape.nullable:
            return None
        return self.children[0].value() if self.children else ABSENT

    def _nothing(self, empty: Any) -> Any:
        return {EMPTY: empty, NULL: None}.get(self.empty, ABSENT)


def shape_of(part: Any, root: Schema, depth: int) -> Shape:
    schema = resolved_in(part, root)
    schema, nullable = _without_null(schema, root)
    values = _values(schema)
    if values:
        return Shape(CHOICE, schema, choices=[*values, *([None] if nullable else [])])
    if depth > MAX_DEPTH:
        return Shape(JSON, schema)
    if _is_mixed(schema):
        branches, nullable = _branches(schema, root)
        inner = [shape_of(branch, root, depth + 1) for branch in branches]
        kind = VARIANT if branches else JSON
        return Shape(kind, schema, nullable, branches=branches, inner=inner)
    kind = _KINDS.get(_type(schema), JSON)
    if kind == LIST and (not isinstance(schema.get("items"), dict) or "prefixItems" in schema):
        kind = JSON
    if kind == GROUP and "properties" not in schema:
        kind = JSON
    return Shape(kind, schema, nullable)


def _without_null(schema: Schema, root: Schema) -> tuple[Schema, bool]:
    """Of "this or null", this."""
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
    """Of a schema that is one of several and nothing else, each; and whether null is one."""
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


class Builder:
    """Draws the fields of one schema from one source."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MAX_FIELDS

    def whole(self, source: Source) -> Field:
        """Raises TooMany."""
        row = row_of("", self._root, self._root, depth=0, required=True)
        return self._field("f", (), row, self._root, source, 0)

    def _field(
        self,
        key: str,
        path: tuple[str | int, ...],
        row: Row,
        part: Any,
        source: Source,
        depth: int,
        *,
        is_item: bool = False,
    ) -> Field:
        self._left -= 1
        if self._left < 0:
            raise TooMany
        shape = shape_of(part, self._root, depth)
        kind = source.kind(shape)
        made = Field(key, path, row, kind, shape, source.text(shape, kind), is_item=is_item)
        made.empty = source.empty() or _default_empty(made)
        if kind == GROUP:
            made.children = list(self._members(made, source, depth))
        elif kind == LIST:
            made.children = list(self._items(made, source, depth))
        elif kind == VARIANT:
            self._vary(made, source, depth)
        return made

    def _vary(self, of: Field, source: Source, depth: int) -> None:
        rows = [
            row_of("", part, self._root, depth=depth, required=True) for part in of.shape.branches
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
            of.children = [self._field(key, of.path, rows[n], part, source.branch(n), depth + 1)]

    def _members(self, group: Field, source: Source, depth: int) -> Iterator[Field]:
        schema = group.shape.schema
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        names = list(properties_of(schema))
        for n, (name, part) in enumerate(properties_of(schema).items()):
            row = row_of(name, part, self._root, depth=depth, required=name in required)
            key, path = f"{group.key}.{n}", (*group.path, name)
            yield self._field(key, path, row, part, source.member(name, n), depth + 1)
        others = source.others(names)
        written = others.text(Shape(JSON, {}), JSON)
        if written or isinstance(schema.get("additionalProperties"), dict):
            row = Row(_("other members"), depth, "object", False, [], "")
            rest = Field(f"{group.key}.r", group.path, row, JSON, Shape(JSON, {}), written)
            rest.is_rest = True
            yield rest

    def _items(self, of: Field, source: Source, depth: int) -> Iterator[Field]:
        part = of.shape.schema["items"]
        for n, item in enumerate(source.items()):
            row = row_of(str(n + 1), part, self._root, depth=depth, required=True)
            key, path = f"{of.key}.{n}", (*of.path, n)
            yield self._field(key, path, row, part, item, depth + 1, is_item=True)


def _named(row: Row, part: Schema) -> str:
    """What a branch is called: its title, or what tells it from the others, or its type."""
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


@dataclass(frozen=True, slots=True)
class Given:
    """A value, as `exact_json` reads it."""

    value: Any = ABSENT

    def kind(self, shape: Shape) -> str:
        return shape.kind if self._fits(shape) else JSON

    def _fits(self, shape: Shape) -> bool:
        match shape.kind, self.value:
            case _, value if value is ABSENT:
                return True
            case "variant", _:
                return self.which(shape.inner) is not None
            case "choice", value:
                return value in [exact(choice) for choice in shape.choices]
            case _, None:
                return shape.nullable
            case "text", str(value):
                return not text.hidden_count(value) and "\r" not in value
            case "list", list(value):
                return len(value) <= MAX_ITEMS
            case ("number", Number()) | ("group", dict()):
                return True
            case _:
                return False

    def text(self, shape: Shape, kind: str) -> str:
        match kind, self.value:
            case _, value if value is ABSENT:
                return ""
            case "choice", value:
                return str([exact(choice) for choice in shape.choices].index(value))
            case "text", str(value):
                return value
            case "number", Number(written):
                return written
            case "json", value:
                return pretty(value)
            case _:
                return ""

    def which(self, branches: list[Shape]) -> int | None:
        if self.value is ABSENT:
            return None
        if self.value is None:
            return len(branches)
        return next((n for n, shape in enumerate(branches) if self._is_of(shape)), None)

    def _is_of(self, shape: Shape) -> bool:
        """Its type, and for an object its required and its constant members."""
        if shape.kind in (JSON, VARIANT) or not self._fits(shape):
            return False
        if not isinstance(self.value, dict):
            return True
        required = shape.schema.get("required")
        members = properties_of(shape.schema)
        return all(
            name in self.value for name in (required if isinstance(required, list) else [])
        ) and all(
            self.value.get(name) == exact(inner["const"])
            for name, inner in members.items()
            if isinstance(inner, dict) and "const" in inner and name in self.value
        )

    def branch(self, index: int) -> Source:
        return self

    def empty(self) -> str:
        if self.value is None:
            return NULL
        return EMPTY if self.value in ("", [], {}) else ""

    def items(self) -> list[Source]:
        return [Given(item) for item in self.value] if isinstance(self.value, list) else []

    def member(self, name: str, index: int) -> Source:
        return Given(self.value.get(name, ABSENT) if isinstance(self.value, dict) else ABSENT)

    def others(self, names: list[str]) -> Source:
        if not isinstance(self.value, dict):
            return Given()
        left = {name: member for name, member in self.value.items() if name not in names}
        return Given(left or ABSENT)


@dataclass(frozen=True, slots=True)
class Posted:
    """What a browser sent. `asked`: the button that was pressed, as (verb, key)."""

    data: dict[str, str]
    key: str
    asked: tuple[str, str]

    def kind(self, shape: Shape) -> str:
        return JSON if self.data.get(f"{self.key}:as") == JSON else shape.kind

    def text(self, shape: Shape, kind: str) -> str:
        # Browsers write every line break of a form as CR LF.
        return self.data.get(self.key, "").replace("\r\n", "\n")

    def empty(self) -> str:
        given = self.data.get(f"{self.key}:empty", "")
        return given if given in (OUT, EMPTY, NULL) else ""

    def items(self) -> list[Source]:
        written = self.data.get(f"{self.key}:n", "")
        count = min(int(written), MAX_ITEMS) if written.isdecimal() and len(written) < 4 else 0
        keys = [f"{self.key}.{n}" for n in range(count)]
        left = [key for key in keys if self.asked != ("remove", key)]
        if self.asked == ("add", self.key) and len(left) < MAX_ITEMS:
            # No such field was posted: it begins empty.
            left.append(f"{self.key}.new")
        return [Posted(self.data, key, self.asked) for key in left]

    def member(self, name: str, index: int) -> Source:
        return Posted(self.data, f"{self.key}.{index}", self.asked)

    def which(self, branches: list[Shape]) -> int | None:
        given = self.data.get(f"{self.key}:which", "")
        known = given.isdecimal() and len(given) < 3 and int(given) <= len(branches)
        return int(given) if known else None

    def branch(self, index: int) -> Source:
        return Posted(self.data, f"{self.key}.v{index}", self.asked)

    def others(self, names: list[str]) -> Source:
        return Posted(self.data, f"{self.key}.r", self.asked)
