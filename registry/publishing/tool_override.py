"""How a toolset shows a tool: by another name, in an operator's words, with arguments fixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from core import strict_json
from core.strict_json import Ambiguous
from registry.schemas.violations import Violation, json_path

# In `_meta` of a listed tool: what an operator said, and what people call it.
BY_OPERATOR = "countersign/byOperator"
TOOL = "countersign/tool"
_OURS = "countersign/"

__all__ = [
    "AS_IT_IS",
    "Ambiguous",
    "OverriddenTool",
    "Pin",
    "as_written",
    "pins",
    "without",
]


@dataclass(frozen=True, slots=True)
class Pin:
    """An argument that is fixed: as the operator wrote it, and what that means."""

    text: bytes
    value: Any

    def is_same(self, given: Any) -> bool:
        # Not ==, for which 1 is True.
        return _canonical(given) == _canonical(self.value)


@dataclass(frozen=True, slots=True)
class OverriddenTool:
    """Empty where it is as its server has it."""

    name: str = ""
    title: str = ""
    description: str = ""
    pins: Mapping[str, Pin] = field(default_factory=dict)
    # If not, nobody knows what must not be said otherwise: then the tool is not offered.
    is_readable: bool = True

    def words(self, content: Mapping[str, Any], *, name: str, exposed_name: str) -> dict[str, Any]:
        """The definition as agents get it; what an operator said in it is marked as theirs."""
        if self == AS_IT_IS:
            return _served(content) | {"name": name}
        said = {"title": self.title, "description": self.description}
        told = {**content, **{key: text for key, text in said.items() if text}, "name": name}
        marked = [key for key in ("name", *said) if getattr(self, key)]
        if self.pins:
            told["inputSchema"] = without(content["inputSchema"], self.pins)
            marked.append("inputSchema")
        told["_meta"] = _meta(content) | {BY_OPERATOR: marked, TOOL: exposed_name}
        return told

    def put_in(self, arguments: bytes, parsed: Any) -> tuple[bytes, Any, list[Violation]]:
        """Adds the pinned arguments; returns bytes, document, and violations where the agent gave
        another value."""
        if not self.pins or not isinstance(parsed, dict):
            return arguments, parsed, []
        differing = [
            n for n, pin in self.pins.items() if n in parsed and not pin.is_same(parsed[n])
        ]
        missing = {name: pin for name, pin in self.pins.items() if name not in parsed}
        whole = parsed | {name: pin.value for name, pin in missing.items()}
        fixed = [Violation(json_path([name]), FIXED) for name in differing]
        return _append(arguments, missing), whole, fixed

    def agrees(self, parsed: Any) -> bool:
        """Is all that is fixed in these arguments, as it is fixed?"""
        given = parsed if isinstance(parsed, dict) else {}
        return all(name in given and pin.is_same(given[name]) for name, pin in self.pins.items())


# The value itself is not told: it may be what agents shall not know.
FIXED = "is fixed by this toolset: leave it out"
AS_IT_IS = OverriddenTool()


def pins(text: str) -> dict[str, Pin]:
    """Parses pinned arguments, a JSON object; raises Ambiguous, or ValueError if it is none."""
    if not text.strip():
        return {}
    values = strict_json.loads(text.encode())
    where = strict_json.spans(text)
    return {
        name: Pin(strict_json.one_line(text[slice(*where[name])]), value)
        for name, value in values.items()
    }


def as_written(name: str, title: str, description: str, pinned: str) -> OverriddenTool:
    """The override in a row, which may have been written past our checks."""
    try:
        return OverriddenTool(name, title, description, pins(pinned))
    except ValueError:
        return OverriddenTool(name, title, description, is_readable=False)


def without(schema: Any, names: Iterable[str]) -> Any:
    """The schema of what is left to say."""
    gone = set(names)
    told = dict(schema)
    properties = told.get("properties")
    if isinstance(properties, dict):
        told["properties"] = {name: part for name, part in properties.items() if name not in gone}
    required = told.get("required")
    if isinstance(required, list):
        told["required"] = [name for name in required if name not in gone]
        if not told["required"]:
            del told["required"]
    return told


def _served(content: Mapping[str, Any]) -> dict[str, Any]:
    """A server's own words, without what only we may say."""
    told = dict(content)
    if isinstance(content.get("_meta"), dict) and _meta(content) != content["_meta"]:
        told["_meta"] = _meta(content)
    return told


def _meta(content: Mapping[str, Any]) -> dict[str, Any]:
    meta = content.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    return {key: value for key, value in meta.items() if not key.startswith(_OURS)}


def _append(arguments: bytes, missing: Mapping[str, Pin]) -> bytes:
    """The agent's bytes unchanged, followed by the pinned arguments."""
    if not missing:
        return arguments
    more = b",".join(orjson.dumps(name) + b":" + pin.text for name, pin in missing.items())
    before = (arguments or b"{}").rstrip()[:-1]
    return before + (b"" if before.strip() == b"{" else b",") + more + b"}"


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
