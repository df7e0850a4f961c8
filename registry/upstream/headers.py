"""The HTTP headers that repeat parts of a request, so that proxies can route without parsing."""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

ANNOTATION = "x-mcp-header"

_SAFE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_SENTINEL = re.compile(r"=\?base64\?.*\?=")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# Keywords with schemas inside; only `properties` keeps a value's place known.
_ONE = {
    *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames"),
    *("unevaluatedProperties", "not", "if", "then", "else", "contentSchema"),
}
_MANY = {"allOf", "anyOf", "oneOf", "prefixItems"}
_NAMED = {"patternProperties", "dependentSchemas", "$defs", "definitions"}

Path = tuple[str, ...]


class InvalidAnnotation(Exception):
    """Why a tool's x-mcp-header annotations forbid to use it over HTTP."""


def encode(value: str) -> str:
    """The value itself, or base64 between sentinels where a header could not carry it."""
    if (_SAFE.fullmatch(value) or not value) and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def declared_params(schema: Mapping[str, Any]) -> dict[Path, str]:
    """Which arguments a tool wants repeated, by path; raises InvalidAnnotation.

    Source: MCP 2026-07-28, basic/transports, "Custom headers from tool parameters".
    """
    found: dict[Path, str] = {}
    taken: set[str] = set()
    for path, position in _positions(schema):
        if ANNOTATION not in position:
            continue
        name = _declared_name(path, position)
        if name.lower() in taken:
            raise InvalidAnnotation(f"Two properties ask for the header {name}.")
        taken.add(name.lower())
        found[path or ()] = name
    return found


def param_headers(declared: Mapping[Path, str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The Mcp-Param-* headers for one call."""
    headers = {}
    for path, name in declared.items():
        value = _value_at(arguments, path)
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, str | int):
            headers[f"Mcp-Param-{name}"] = encode(str(value))
    return headers


def _declared_name(path: Path | None, position: Mapping[str, Any]) -> str:
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
    if keyword == "properties" and isinstance(value, Mapping):
        return [(None if path is None else (*path, name), sub) for name, sub in value.items()]
    if keyword in _ONE:
        return [(None, value)]
    if keyword in _MANY and isinstance(value, list):
        return [(None, sub) for sub in value]
    if keyword in _NAMED and isinstance(value, Mapping):
        return [(None, sub) for sub in value.values()]
    return []


def _value_at(arguments: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)
    return arguments
