"""Arguments that a tool wants repeated in headers, so that proxies can route without parsing.

Source: MCP 2026-07-28, basic/transports/streamable-http, "Custom Headers from Tool Parameters".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.schema_keywords import MANY, NAMED, ONE

ANNOTATION = "x-mcp-header"
PREFIX = "Mcp-Param-"

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# As others may write a whole number that we write without a fraction.
_WHOLE = re.compile(r"(-?[0-9]{1,16})\.0{1,16}")
Path = tuple[str, ...]


class InvalidAnnotation(Exception):
    """Why a tool's x-mcp-header annotations forbid to use it over HTTP."""


def declared(schema: Mapping[str, Any]) -> dict[Path, str]:
    """The headers, without their prefix, by the path of the argument; raises InvalidAnnotation."""
    found: dict[Path, str] = {}
    taken: set[str] = set()
    for path, position in _positions(schema):
        if ANNOTATION not in position:
            continue
        name = _name(path, position)
        if name.lower() in taken:
            raise InvalidAnnotation(f"Two properties ask for the header {name}.")
        taken.add(name.lower())
        found[path or ()] = name
    return found


def value_at(arguments: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)
    return arguments


def header_value(value: Any) -> str | None:
    """An argument as a header's text; None for what has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, str | int) else None


def agrees(said: str, value: Any) -> bool:
    """Whether a header's text, decoded, says the same as the argument. 42.0 is 42."""
    whole = None if isinstance(value, str) else _WHOLE.fullmatch(said)
    return (whole[1] if whole else said) == header_value(value)


def _name(path: Path | None, position: Mapping[str, Any]) -> str:
    name = position[ANNOTATION]
    if not path:
        raise InvalidAnnotation(f"{ANNOTATION} stands where no argument has a fixed place.")
    where = ".".join(path)
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise InvalidAnnotation(f"{ANNOTATION} of “{where}” is not a header name.")
    kind = position.get("type")
    if not isinstance(kind, str) or kind not in ("string", "integer", "boolean"):
        raise InvalidAnnotation(f"“{where}” with {ANNOTATION} must be string, integer or boolean.")
    return name


def _positions(schema: Any) -> Iterator[tuple[Path | None, Mapping[str, Any]]]:
    """Every subschema with its path, or None once its place depends on the value."""
    waiting: list[tuple[Path | None, Any]] = [((), schema)]
    while waiting:
        path, position = waiting.pop()
        if not isinstance(position, Mapping):
            continue
        yield path, position
        for keyword, value in position.items():
            waiting += _inside(path, keyword, value)


def _inside(path: Path | None, keyword: str, value: Any) -> list[tuple[Path | None, Any]]:
    """Only `properties` keeps a value's place known."""
    if keyword == "properties" and isinstance(value, Mapping):
        return [(None if path is None else (*path, name), sub) for name, sub in value.items()]
    if keyword in NAMED and isinstance(value, Mapping):
        return [(None, sub) for sub in value.values()]
    if keyword in MANY and isinstance(value, list):
        return [(None, sub) for sub in value]
    return [(None, value)] if keyword in ONE else []
