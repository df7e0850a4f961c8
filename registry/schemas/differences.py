"""Differences between two definitions, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.schemas.arguments import SchemaArgument, rows
from registry.schemas.risks import HINTS, Mark, of_argument, of_hint, of_texts

Content = dict[str, Any]

# More lines than this are for the two raw definitions.
MAX_LINES = 400
# Of two long texts that mostly agree people are shown what differs, with some words around it.
LONG = 200
AROUND = 16
_WORDS = re.compile(r"\s+|\S+")
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

    @property
    def is_short(self) -> bool:
        """Do both fit in one line?"""
        texts = (self.before or "", self.after or "")
        return self.kind == "changed" and all(len(t) < 40 and "\n" not in t for t in texts)

    @property
    def excerpt(self) -> tuple[str, str] | None:
        """The differing parts of two long texts; None if they are short, or differ throughout."""
        if self.before is None or self.after is None or len(self.before + self.after) < LONG:
            return None
        old, new = _WORDS.findall(self.before), _WORDS.findall(self.after)
        first = max(0, _common_prefix(old, new) - AROUND)
        last = max(0, _common_prefix(old[first:][::-1], new[first:][::-1]) - AROUND)
        if first + last == 0:
            return None
        return _excerpt(old, first, last), _excerpt(new, first, last)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff. `kind`: "added", "removed", "same" or "place"."""

    kind: str
    text: str


def _common_prefix(old: list[str], new: list[str]) -> int:
    """The length of their common beginning."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


def _excerpt(words: list[str], first: int, last: int) -> str:
    kept = "".join(words[first : len(words) - last])
    return f"{'… ' if first else ''}{kept}{' …' if last else ''}"


def changes(before: Content, after: Content) -> list[DefinitionChange]:
    found = [*_texts(before, after), *_hints(before, after), *_arguments(before, after)]
    seen = {*_TEXTS, *_SCHEMAS, "annotations"}
    rest = [name for name in {**before, **after} if name not in seen]
    return found + [
        DefinitionChange(_("Other"), name, _as_text(before, name), _as_text(after, name))
        for name in rest
        if before.get(name) != after.get(name)
    ]


def marks(before: Content, after: Content) -> list[Mark]:
    """Risks that are new in this version."""
    old, new = (_mapping(content.get("annotations")) for content in (before, after))
    hints = [mark for name in HINTS for mark in of_hint(name, old.get(name), new.get(name))]
    was, now = (_by_path(_mapping(content.get("inputSchema"))) for content in (before, after))
    arguments = [mark for path in now for mark in of_argument(path, was.get(path), now[path])]
    return [*hints, *of_texts(before, after), *arguments]


def lines(before: Content, after: Content) -> list[DiffLine]:
    """The lines that differ between the two as indented JSON, with three lines of context."""
    old, new = (json.dumps(c, indent=2, ensure_ascii=False).splitlines() for c in (before, after))
    # The first two lines of it name files.
    diff = list(unified_diff(old, new, lineterm=""))[2:]
    more = _("… and %d more lines: read the two versions.") % (len(diff) - MAX_LINES)
    cut = [DiffLine("place", more)] if len(diff) > MAX_LINES else []
    return [_line(line) for line in diff[:MAX_LINES]] + cut


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
            was, now = (_hint(name, claims) for claims in (old, new))
            yield DefinitionChange(_("Hint"), name, was, now)


def _hint(name: str, claims: Content) -> str | None:
    if name in HINTS and name not in claims:
        return _("Not declared")
    value = claims.get(name)
    if name not in HINTS or not isinstance(value, bool):
        return _as_text(claims, name)
    return str(HINTS[name]) if value else _("not %(hint)s") % {"hint": HINTS[name]}


def _arguments(before: Content, after: Content) -> Iterator[DefinitionChange]:
    for name, label in _SCHEMAS.items():
        schemas = [_mapping(content.get(name)) for content in (before, after)]
        old, new = map(_by_path, schemas)
        listed = [path for path in {**old, **new} if old.get(path) != new.get(path)]
        for path in listed:
            was, now = (_described(row) if row else None for row in (old.get(path), new.get(path)))
            yield DefinitionChange(label, path, was, now)
        if schemas[0] != schemas[1] and not listed:
            said = _("It differs where this list does not reach: read the lines of JSON.")
            yield DefinitionChange(label, "", None, said)


def _by_path(schema: Content) -> dict[str, SchemaArgument]:
    """Each argument by the names that lead to it."""
    described: dict[str, SchemaArgument] = {}
    trail: list[str] = []
    for row in rows(schema):
        trail = [*trail[: row.depth], row.name]
        described[".".join(trail)] = row
    return described


def _described(row: SchemaArgument) -> str:
    parts = [row.type, _("required") if row.required else "", *row.constraints]
    if row.has_default:
        parts.append(_("default %s") % json.dumps(row.default, ensure_ascii=False))
    return "\n".join(filter(None, (", ".join(filter(None, parts)), row.description)))


def _as_text(content: Content, name: str) -> str | None:
    return json.dumps(content[name], ensure_ascii=False) if name in content else None


def _mapping(value: Any) -> Content:
    return value if isinstance(value, dict) else {}
