"""YAML of a policy file as plain values, with the line of each.

Built from the parser's events: no tag names a type, no alias multiplies anything, and a plain
scalar is nothing but null, true, false, a whole number or a text (YAML 1.2, 10.3, without floats:
amounts keep their digits as texts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from core import yaml_words
from core.english import gettext as _
from core.errors import CountersignError

MAX_BYTES = 1024 * 1024
DEPTH_MAX = 20
# Some thousands of rules; more would take seconds to check.
VALUES_MAX = 50_000
SHOWN = 80
_whole = re.compile(r"-?(?:0|[1-9][0-9]{0,14})").fullmatch
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}

Path = tuple[str | int, ...]


class BadPolicyFile(CountersignError):
    """Says in which line, at which path, and what would be right."""


@dataclass(frozen=True, slots=True)
class YamlValue:
    value: Any
    # Where each member begins, from 1.
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int:
        """The line of the member, or of the nearest one around it."""
        return next(
            (self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), 1
        )


def read_yaml(text: str) -> YamlValue:
    """Raises BadPolicyFile."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise BadPolicyFile(_("A policy file has at most 1 MiB."))
    reader = _EventReader(text)
    try:
        return reader.document()
    except yaml.YAMLError as error:
        raise BadPolicyFile(_of_parser(error)) from error


def _of_parser(error: yaml.YAMLError) -> str:
    said = _("Line %(line)d: this is not YAML: %(why)s.")
    return said % {"line": yaml_words.line_of(error), "why": yaml_words.describe(error)}


class _EventReader:
    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=_LOADER))
        self._lines: dict[Path, int] = {}

    def document(self) -> YamlValue:
        next(self._events)
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            return YamlValue(None, {(): 1})
        value = self._node(next(self._events), ())
        next(self._events)
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise _at(event, _("A policy file is one document: remove what follows “---”."))
        return YamlValue(value, self._lines)

    def _node(self, event: Any, path: Path) -> Any:
        _check(event, path)
        self._lines.setdefault(path, event.start_mark.line + 1)
        if len(self._lines) > VALUES_MAX:
            raise _at(event, _("A policy file has at most 50,000 values."))
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(path)
        return self._map(path)

    def _list(self, path: Path) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._node(event, (*path, len(found))))
        return found

    def _map(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            name = self._name(event, path, found)
            self._lines[(*path, name)] = event.start_mark.line + 1
            found[name] = self._node(next(self._events), (*path, name))
        return found

    def _name(self, event: Any, path: Path, found: dict[str, Any]) -> str:
        _check(event, path)
        if not isinstance(event, yaml.ScalarEvent):
            raise _at(event, _("A name is a text, not a list or a map."))
        name = str(event.value)
        if name in found:
            said = _("“%s” stands here twice: remove one of them.")
            raise _at(event, said % name[:SHOWN])
        return name


def _check(event: Any, path: Path) -> None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise _at(event, _("Anchors and aliases (& and *) are not read: write the value out."))
    if getattr(event, "tag", None) not in (None, "!"):
        raise _at(event, _("Tags (!) are not read: write the plain value."))
    if "\0" in (getattr(event, "value", None) or ""):
        raise _at(event, _("A text cannot contain NUL characters."))
    if len(path) > DEPTH_MAX:
        raise _at(event, _("This is nested too deeply."))


def _scalar(event: Any) -> Any:
    text = str(event.value)
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _whole(text) else text


def _at(event: Any, why: str) -> BadPolicyFile:
    said = _("Line %(line)d: %(why)s")
    return BadPolicyFile(said % {"line": event.start_mark.line + 1, "why": why})
