"""Arguments that no case keeps and no message shows: those that the schema marks as secret, and
those that look like secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from inspection import characters, secrets
from registry.schemas.arguments import properties_of
from registry.schemas.recursion import children, target

MASK = "[masked]"
# Parts of a schema that are looked at for all values; of more, every argument counts as secret.
LOOKS_MAX = 100_000
_IN_PLACE = {"allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies"}
_OTHER_MEMBERS = {"additionalProperties", "unevaluatedProperties"}
_ITEMS = {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"}
# Of arguments, though too many members of results are called so.
_SECRET_NAME = re.compile(
    r"(?i)(?:.{0,40}[_\-.])?(?:token|authorization|cookie|pass_?phrase|pass_?code|pin|otp|cvv|cvc"
    r"|credentials?)"
)
_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])")

Schema = dict[str, Any]
# A part of a schema, a value to which it applies, and the names that lead there.
Look = tuple[Any, Any, str]


def find_secrets(schema: Schema, arguments: dict[str, Any]) -> list[str]:
    """The names of such arguments that are given, each with the names around it."""
    return sorted({*_marked(schema, arguments), *_looking(arguments, "", "")})


def mask_secrets(schema: Schema, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with MASK for such values, and for all whose names say that they are secret."""
    hidden = set(find_secrets(schema, arguments))
    return {name: _masked(value, hidden, name, name) for name, value in arguments.items()}


def _masked(value: Any, hidden: set[str], at: str, name: str) -> Any:
    if at in hidden or (_is_secret_name(name) and not isinstance(value, bool | None)):
        return MASK
    if isinstance(value, dict):
        members = value.items()
        return {inner: _masked(one, hidden, _joined(at, inner), inner) for inner, one in members}
    if isinstance(value, list):
        return [_masked(one, hidden, at, name) for one in value]
    return value


def _is_secret_name(name: str) -> bool:
    """However it is written: `new_password`, `newPassword`, or with characters nobody sees."""
    seen = characters.undisguised(name[:80])
    words = _HUMP.sub("_", name if seen is None else seen.text)
    return secrets.is_named(words) or _SECRET_NAME.fullmatch(words) is not None


def _marked(schema: Schema, arguments: dict[str, Any]) -> Iterator[str]:
    """Each part is looked at once for each value: references may lead to it in very many ways."""
    seen: set[tuple[int, int, str]] = set()
    left: list[Look] = [(schema, arguments, "")]
    while left:
        part, value, at = left.pop()
        looked = (id(part), id(value), at)
        if not isinstance(part, dict) or value in (None, "") or looked in seen:
            continue
        seen.add(looked)
        if len(seen) > LOOKS_MAX:
            yield from arguments
            return
        if part.get("writeOnly") is True or part.get("format") == "password":
            yield from [at] if at else arguments
            continue
        left += _next(part, value, at, schema)


def _next(part: Schema, value: Any, at: str, root: Schema) -> Iterator[Look]:
    yield target(root, part), value, at
    for keyword, name, child, _at in children(part, ""):
        if keyword in _IN_PLACE:
            yield child, value, at
        elif isinstance(value, dict):
            for inner in _members(keyword, name, part, value):
                yield child, value[inner], _joined(at, inner)
        elif isinstance(value, list) and keyword in _ITEMS:
            yield from ((child, item, at) for item in value)


def _members(keyword: str, name: str, part: Schema, value: dict[str, Any]) -> Iterator[str]:
    """The members to which such a part applies; a pattern of a server's is taken to fit all."""
    if keyword == "properties":
        yield from [name] if name in value else []
    elif keyword == "patternProperties":
        yield from value
    elif keyword in _OTHER_MEMBERS:
        yield from (inner for inner in value if inner not in properties_of(part))


def _looking(value: Any, at: str, name: str) -> Iterator[str]:
    if isinstance(value, str):
        is_named = _is_secret_name(name) and secrets.is_value(value)
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
