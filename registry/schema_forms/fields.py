"""HTML form fields for a tool's JSON Schema, which keep each value's JSON type.

A field is built from a value or from posted data (sources.py) and returns a value. It holds as
JSON what HTML cannot hold exactly: a choice of types, or text with hidden characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from core import strict_json, text
from core.exact_json import ABSENT, exact, loads, number
from registry.schema_forms.shapes import CHOICE, GROUP, JSON, LIST, TEXT, VARIANT, FieldShape
from registry.schema_forms.sources import EMPTY, NULL, OUT
from registry.schemas.arguments import SchemaArgument, as_words
from registry.schemas.violations import json_path

_LINE = 120
EXAMPLES = 8
_is_date = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch


@dataclass(slots=True)
class Field:
    """`key` is the field's name in HTML, `path` the place of its value in the document."""

    key: str
    path: tuple[str | int, ...]
    row: SchemaArgument
    kind: str
    shape: FieldShape
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
        """The HTML input type: a calendar only if it can hold the present value."""
        is_date = self.shape.schema.get("format") == "date"
        return "date" if is_date and (not self.text or _is_date(self.text)) else "text"

    @property
    def takes_file(self) -> bool:
        """Whether the field takes bytes as text, which scripts fill in from a file."""
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
        """The possible meanings of an empty field. A required one cannot be left out: it keeps the
        meaning that it has."""
        if self.kind in (CHOICE, JSON, VARIANT):
            return []
        nothing = {TEXT: _("an empty text"), LIST: _("an empty list"), GROUP: _("an empty object")}
        ways = [] if self.is_item else [(OUT, _("unset"))]
        if self.kind in nothing:
            ways.append((EMPTY, nothing[self.kind]))
        if self.shape.nullable:
            ways.append((NULL, "null"))
        if self.row.required and not self.is_item:
            return [way for way in ways if way[0] == self.empty or way[0] == NULL]
        return ways

    @property
    def is_list(self) -> bool:
        return self.kind == LIST

    def every(self) -> Iterator[Field]:
        yield self
        for child in self.children:
            yield from child.every()

    def value(self) -> Any:
        """The field's value, ABSENT if left out; records errors where there is none."""
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
            rest.errors.append(_("“%s” has its own field: fill in that one.") % twice[0])
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
