"""Arguments that no case keeps and no message shows: those that the schema marks as secret, and
those that look like secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspection import secrets
from registry.schemas.arguments import properties_of, resolved_in

# Schemas may refer to themselves.
DEPTH_MAX = 12
MASK = "[masked]"
_BRANCHES = ("allOf", "anyOf", "oneOf")

Schema = dict[str, Any]


def find_secrets(schema: Schema, arguments: Any) -> list[str]:
    """The names of such arguments that are given, each with the names around it."""
    return sorted({*_marked(schema, arguments, schema, "", 0), *_looking(arguments, "", "")})


def mask_secrets(schema: Schema, arguments: Any) -> Any:
    """The arguments with MASK for such values, and for all whose names say that they are secret."""
    return _masked(arguments, set(find_secrets(schema, arguments)), "", "")


def _masked(value: Any, hidden: set[str], at: str, name: str) -> Any:
    if at in hidden or secrets.is_named(name):
        return MASK
    if isinstance(value, dict):
        members = value.items()
        return {inner: _masked(one, hidden, _joined(at, inner), inner) for inner, one in members}
    if isinstance(value, list):
        return [_masked(one, hidden, at, name) for one in value]
    return value


def _marked(part: Any, value: Any, root: Schema, at: str, depth: int) -> Iterator[str]:
    resolved = resolved_in(part, root)
    if depth > DEPTH_MAX or value in (None, ""):
        return
    if resolved.get("writeOnly") is True or resolved.get("format") == "password":
        yield at
        return
    for branch in (one for name in _BRANCHES for one in _as_list(resolved.get(name))):
        yield from _marked(branch, value, root, at, depth + 1)
    if isinstance(value, dict):
        for name, inner in properties_of(resolved).items():
            if name in value:
                yield from _marked(inner, value[name], root, _joined(at, name), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _marked(resolved.get("items"), item, root, at, depth + 1)


def _looking(value: Any, at: str, name: str) -> Iterator[str]:
    if isinstance(value, str):
        is_named = secrets.is_named(name) and secrets.is_value(value)
        if is_named or next(iter(secrets.find(value)), None):
            yield at
    elif isinstance(value, dict):
        for inner, member in value.items():
            yield from _looking(member, _joined(at, inner), inner)
    elif isinstance(value, list):
        for member in value:
            yield from _looking(member, at, name)


def _joined(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
