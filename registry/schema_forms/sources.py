"""Sources of a form's field values: a value, or a browser's post."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from core import text
from core.exact_json import ABSENT, Number, exact, pretty
from registry.schema_forms.shapes import JSON, VARIANT, FieldShape
from registry.schemas.arguments import properties_of

MAX_ITEMS = 50
# What an empty field stands for.
OUT, EMPTY, NULL = "out", "empty", "null"


class Source(Protocol):
    """The source of a field's content."""

    def kind(self, shape: FieldShape) -> str: ...
    def text(self, shape: FieldShape, kind: str) -> str: ...
    def empty(self) -> str: ...
    def items(self) -> list[Source]: ...
    def member(self, name: str, index: int) -> Source: ...
    def others(self, names: list[str]) -> Source: ...
    def which(self, branches: list[FieldShape]) -> int | None: ...
    def branch(self, index: int) -> Source: ...


@dataclass(frozen=True, slots=True)
class FormValue:
    """A value, as `exact_json` reads it."""

    value: Any = ABSENT

    def kind(self, shape: FieldShape) -> str:
        return shape.kind if self._fits(shape) else JSON

    def _fits(self, shape: FieldShape) -> bool:
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

    def text(self, shape: FieldShape, kind: str) -> str:
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

    def which(self, branches: list[FieldShape]) -> int | None:
        if self.value is ABSENT:
            return None
        if self.value is None:
            return len(branches)
        return next((n for n, shape in enumerate(branches) if self._is_of(shape)), None)

    def _is_of(self, shape: FieldShape) -> bool:
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
        return [FormValue(item) for item in self.value] if isinstance(self.value, list) else []

    def member(self, name: str, index: int) -> Source:
        return FormValue(self.value.get(name, ABSENT) if isinstance(self.value, dict) else ABSENT)

    def others(self, names: list[str]) -> Source:
        if not isinstance(self.value, dict):
            return FormValue()
        left = {name: member for name, member in self.value.items() if name not in names}
        return FormValue(left or ABSENT)


@dataclass(frozen=True, slots=True)
class PostedForm:
    """A posted form. `asked`: the button that was pressed, as (verb, key)."""

    data: dict[str, str]
    key: str
    asked: tuple[str, str]

    def kind(self, shape: FieldShape) -> str:
        return JSON if self.data.get(f"{self.key}:as") == JSON else shape.kind

    def text(self, shape: FieldShape, kind: str) -> str:
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
        return [PostedForm(self.data, key, self.asked) for key in left]

    def member(self, name: str, index: int) -> Source:
        return PostedForm(self.data, f"{self.key}.{index}", self.asked)

    def which(self, branches: list[FieldShape]) -> int | None:
        given = self.data.get(f"{self.key}:which", "")
        known = given.isdecimal() and len(given) < 3 and int(given) <= len(branches)
        return int(given) if known else None

    def branch(self, index: int) -> Source:
        return PostedForm(self.data, f"{self.key}.v{index}", self.asked)

    def others(self, names: list[str]) -> Source:
        return PostedForm(self.data, f"{self.key}.r", self.asked)
