"""Texts of a JSON document, found and replaced where they stand: all else stays as it is, byte for
byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

# Each character is looked at once: neither of the two parts takes what begins the other.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_SPACE = re.compile(r"[^ \t\r\n]")
# What carries bytes, and not words.
_BYTES = ("data", "blob")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]*={0,2}")
SHORTEST_BYTES = 200


class JsonString(NamedTuple):
    """A text of the document. `name`: of the member that it is the value of, or stands in a list
    of; its own for a member's name."""

    start: int
    end: int
    text: str
    name: str
    is_name: bool


def strings(document: str, *, with_bytes: bool = False) -> Iterator[JsonString]:
    """All texts, in order. Those that are bytes in base 64 are left out, unless `with_bytes`."""
    name = ""
    for match in _STRING.finditer(document):
        text = _decoded(match.group())
        following = _NO_SPACE.search(document, match.end())
        if following is not None and following.group() == ":":
            name = text
            yield JsonString(match.start(), match.end(), text, name, True)
        elif with_bytes or not _is_bytes(name, text):
            yield JsonString(match.start(), match.end(), text, name, False)


def replaced(document: str, change: Callable[[JsonString], str]) -> str:
    """The document with each text as `change` returns it."""
    parts, at = [], 0
    for one in strings(document):
        text = change(one)
        if text != one.text:
            parts += [document[at : one.start], encoded(text)]
            at = one.end
    if not parts:
        return document
    return "".join([*parts, document[at:]])


def encoded(text: str) -> str:
    try:
        return orjson.dumps(text).decode()
    except orjson.JSONEncodeError:
        # A lone surrogate.
        return json.dumps(text)


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a parsed document with its path, names of members too."""
    stack = [(path, value)]
    while stack:
        at, one = stack.pop()
        if isinstance(one, str):
            yield at, one
        elif isinstance(one, dict):
            for name, inner in reversed(one.items()):
                stack.append((f"{at}.{name}" if at else str(name), inner))
            for name in one:
                yield f"{at}.{name}" if at else str(name), str(name)
        elif isinstance(one, list):
            stack += [(f"{at}[{n}]", inner) for n, inner in reversed([*enumerate(one)])]


def _is_bytes(name: str, text: str) -> bool:
    is_long = name in _BYTES and len(text) >= SHORTEST_BYTES
    return is_long and _BASE64.fullmatch(text) is not None


def _decoded(raw: str) -> str:
    if "\\" not in raw:
        return raw[1:-1]
    try:
        return str(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return str(json.loads(raw, strict=False))
