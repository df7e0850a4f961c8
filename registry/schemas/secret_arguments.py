"""Arguments that no case keeps and no message shows: those that the schema marks as secret, and
those that look like secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from inspection import characters, secrets
from inspection.secret_names import is_value
from registry.schemas import possible_secrets
from registry.schemas.arguments import properties_of
from registry.schemas.recursion import children, target

MASK = "[masked]"
# Parts of a schema that are looked at for all values; of more, every argument counts as secret.
LOOKS_MAX = 100_000
_IN_PLACE = {"allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies"}
_OTHER_MEMBERS = {"additionalProperties", "unevaluatedProperties"}
_ITEMS = {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"}
# Of arguments, though too many members of results are called so.
_SHORT_NAME = re.compile(r"(?i)(?:.{0,40}[_\-.])?(?:pin|otp|cvv|cvc)")
_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])")
# Members that name another one, as in {"name": "Authorization", "value": "…"}, and that one.
_LABELS = (
    *("name", "key", "header", "field", "param", "parameter", "property", "prop", "option"),
    *("variable", "var", "attribute", "attr", "element", "selector", "locator", "label", "id"),
    *("k", "path", "env", "column", "title", "名称", "名", "键"),
)
_VALUES = (
    *("value", "values", "val", "v", "content", "contents", "data", "text", "string"),
    *("default", "body", "plaintext", "new", "值", "内容"),
)

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
    if at in hidden or (possible_secrets.is_secret(name) and not isinstance(value, bool | None)):
        return MASK
    if isinstance(value, dict):
        return _masked_object(value, hidden, at)
    if isinstance(value, list):
        return _masked_list(value, hidden, at, name)
    # Of `tokens` the texts are secret, and no number of them.
    is_one_of_many = isinstance(value, str) and possible_secrets.is_secret(name.removesuffix("s"))
    is_secret = isinstance(value, str) and possible_secrets.has_secret(value)
    return MASK if is_one_of_many or is_secret else value


def _masked_object(members: dict[str, Any], hidden: set[str], at: str) -> dict[str, Any]:
    """Where one member names a secret, its value is masked; of two members: the other one."""
    labels = {inner for inner, one in members.items() if _labels_secret(inner, one)}
    return {
        inner: MASK
        if labels - {inner} and _is_labelled(inner, one, members)
        else _masked(one, hidden, _joined(at, inner), inner)
        for inner, one in members.items()
    }


def _labels_secret(name: str, value: Any) -> bool:
    """`{"name": "Authorization"}`, and `{"secretName": …}` whatever it is."""
    words = _HUMP.sub("_", name).replace("-", "_").casefold().split("_")
    if words[-1] not in _LABELS or not isinstance(value, str):
        return False
    return possible_secrets.is_secret(value) or (
        len(words) > 1 and possible_secrets.is_secret(name)
    )


def _is_labelled(name: str, value: Any, members: dict[str, Any]) -> bool:
    if isinstance(value, bool | None):
        return False
    return name.casefold() in _VALUES or len(members) == 2


def _masked_list(values: list[Any], hidden: set[str], at: str, name: str) -> Any:
    """A whole command where it has a secret; else what comes after a name, as in ["token", "…"]."""
    texts = [one for one in values if isinstance(one, str)]
    if len(texts) > 1 and possible_secrets.has_secret(" ".join(texts)):
        return MASK
    return [
        MASK if place and _names_secret(values[place - 1]) else _masked(one, hidden, at, name)
        for place, one in enumerate(values)
    ]


def _names_secret(value: Any) -> bool:
    """`DB_PASS=x` has its value already."""
    is_name = isinstance(value, str) and 0 < len(value) <= 80 and " " not in value
    return is_name and "=" not in value[:-1] and possible_secrets.is_secret(value)


def _is_secret_name(name: str) -> bool:
    """However it is written: `new_password`, `newPassword`, or with characters nobody sees."""
    seen = characters.undisguised(name[:80])
    words = _HUMP.sub("_", name if seen is None else seen.text)
    return possible_secrets.is_surely_secret(name) or _SHORT_NAME.fullmatch(words) is not None


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
        is_named = _is_secret_name(name) and is_value(value)
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
