"""Conditions that the arguments of one call suggest, for a rule about calls like it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from policies.conditions import BadCondition, compiled
from policies.undecided import Undecided

MOST = 12
DEEPEST = 3
# Longer texts and lists are nobody's condition.
LONGEST_TEXT, LONGEST_LIST = 80, 5

# A pattern such as “*.com” is none.
_HOST = re.compile(r"[a-z0-9.-]+")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# Source: cel-spec, "Syntax", RESERVED and the literals.
_RESERVED = {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import"}
_RESERVED |= {"in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void"}
_RESERVED |= {"while"}


class ConditionOffer(NamedTuple):
    """A condition in CEL, and in words."""

    text: str
    said: str


def offers_of(arguments: Any) -> list[ConditionOffer]:
    """Conditions that hold of these arguments, each of one of them."""
    if not isinstance(arguments, dict):
        return []
    size = len(json.dumps(arguments, default=str))
    offers = _of_members("args", "", arguments, DEEPEST)
    usable = (offer for offer in offers if _holds(offer, arguments, size))
    return list(islice(usable, MOST))


def _holds(offer: ConditionOffer, arguments: dict[str, Any], size: int) -> bool:
    try:
        return compiled(offer.text, hints=False).holds({"args": arguments}, size)
    except (BadCondition, Undecided):
        return False


def _of_members(
    path: str, name: str, members: dict[str, Any], depth: int
) -> Iterator[ConditionOffer]:
    for key, value in members.items():
        there, called = _select(path, key), f"{name}.{key}" if name else key
        if isinstance(value, dict):
            if depth > 1:
                yield from _of_members(there, called, value, depth - 1)
        elif len(called) <= LONGEST_TEXT:
            yield from _of_value(there, called, value)


def _select(path: str, key: str) -> str:
    is_plain = _NAME.fullmatch(key) and key not in _RESERVED
    return f"{path}.{key}" if is_plain else f"{path}[{_literal(key)}]"


def _of_value(path: str, name: str, value: Any) -> Iterator[ConditionOffer]:
    match value:
        case bool():
            said = _("%(name)s is %(value)s") % {"name": name, "value": _literal(value)}
            yield ConditionOffer(f"{path} == {_literal(value)}", said)
        case int() | float():
            said = _("%(name)s is at most %(value)s") % {"name": name, "value": value}
            yield ConditionOffer(f"{path} <= {value}", said)
        case str() if 0 < len(value) <= LONGEST_TEXT:
            yield _of_text(path, name, value)
        case list() if 0 < len(value) <= LONGEST_LIST and all(map(_is_short, value)):
            listed = ", ".join(map(_literal, value))
            said = _("each of %(name)s is one of %(values)s") % {"name": name, "values": listed}
            yield ConditionOffer(f"{path}.all(one, one in [{listed}])", said)


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT


def _of_text(path: str, name: str, value: str) -> ConditionOffer:
    if host := _host(value):
        said = _("%(name)s leads to %(host)s") % {"name": name, "host": host}
        return ConditionOffer(f"url_host_in({path}, [{_literal(host)}])", said)
    if folder := _folder(value):
        said = _("%(name)s lies under %(folder)s") % {"name": name, "folder": folder}
        return ConditionOffer(f"path_within({path}, {_literal(folder)})", said)
    said = _("%(name)s is exactly “%(value)s”") % {"name": name, "value": value}
    return ConditionOffer(f"{path} == {_literal(value)}", said)


def _host(value: str) -> str:
    if not value.startswith(("https://", "http://")):
        return ""
    try:
        host = urlsplit(value).hostname or ""
    except ValueError:
        return ""
    return host if _HOST.fullmatch(host) else ""


def _folder(value: str) -> str:
    """The folder of a path whose every part is a name: “//” and “/./” would be all there is."""
    folder = value.rpartition("/")[0]
    is_plain = all(part.strip(".") for part in folder.split("/")[1:])
    return folder if value.startswith("/") and is_plain else ""


def _literal(value: Any) -> str:
    """The value as CEL writes it, whose escapes of JSON's strings are the same."""
    return json.dumps(value, ensure_ascii=False)
