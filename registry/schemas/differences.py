"""What changed between two definitions, as people read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.schemas.arguments import SchemaArgument, rows

Content = dict[str, Any]

# More lines than this are for the two raw definitions.
MAX_LINES = 400
_TEXTS = {"title": gettext_lazy("Title"), "description": gettext_lazy("Description")}
_SCHEMAS = {"inputSchema": gettext_lazy("Argument"), "outputSchema": gettext_lazy("Result")}


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """`before` and `after` are texts of strangers; None where there was nothing."""

    what: Any
    name: str
    before: str | None
    after: str | None

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """Of a diff. `kind`: "added", "removed", "same" or "place"."""

    kind: str
    text: str


def changes(before: Content, after: Content) -> list[DefinitionChange]:
    found = [*_texts(before, after), *_hints(before, after), *_arguments(before, after)]
    seen = {*_TEXTS, *_SCHEMAS, "annotations"}
    rest = [name for name in {**before, **after} if name not in seen]
    return found + [
        DefinitionChange(_("Other"), name, _written(before, name), _written(after, name))
        for name in rest
        if before.get(name) != after.get(name)
    ]


def lines(before: Content, after: Content) -> list[DiffLine]:
    """The two as laid-out JSON, the lines that differ with three around them."""
    old, new = (json.dumps(c, indent=2, ensure_ascii=False).splitlines() for c in (before, after))
    # The first two lines of it name files.
    diff = list(unified_diff(old, new, lineterm=""))[2:]
    return [_line(line) for line in diff[:MAX_LINES]]


def _line(line: str) -> DiffLine:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
    return DiffLine(kind, "…" if kind == "place" else line)


def _texts(before: Content, after: Content) -> Iterator[DefinitionChange]:
    for name, label in _TEXTS.items():
        old, new = before.get(name), after.get(name)
        if old != new:
            yield DefinitionChange(label, "", _text(old), _text(new))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _hints(before: Content, after: Content) -> Iterator[DefinitionChange]:
    old, new = (_mapping(content.get("annotations")) for content in (before, after))
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            yield DefinitionChange(
                _("What it claims"), name, _written(old, name), _written(new, name)
            )


def _arguments(before: Content, after: Content) -> Iterator[DefinitionChange]:
    for schema, label in _SCHEMAS.items():
        old, new = (_by_path(_mapping(content.get(schema))) for content in (before, after))
        for path in {**old, **new}:
            if old.get(path) != new.get(path):
                yield DefinitionChange(label, path, old.get(path), new.get(path))


def _by_path(schema: Content) -> dict[str, str]:
    """Each argument's own line, by the names that lead to it."""
    described: dict[str, str] = {}
    trail: list[str] = []
    for row in rows(schema):
        trail = [*trail[: row.depth], row.name]
        described[".".join(trail)] = _described(row)
    return described


def _described(row: SchemaArgument) -> str:
    parts = [row.type, _("required") if row.required else "", *row.constraints]
    if row.has_default:
        parts.append(_("default %s") % json.dumps(row.default, ensure_ascii=False))
    return "\n".join(filter(None, (", ".join(filter(None, parts)), row.description)))


def _written(content: Content, name: str) -> str | None:
    return json.dumps(content[name], ensure_ascii=False) if name in content else None


def _mapping(value: Any) -> Content:
    return value if isinstance(value, dict) else {}
