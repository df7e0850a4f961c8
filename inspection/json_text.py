"""Texts of a JSON document, found and replaced where they stand: all else stays as it is, byte for
byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import orjson

# Each character is looked at once: neither of the two parts takes what begins the other.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
# Also numbers that are long enough to be somebody's.
_STRING_OR_NUMBER = re.compile(rf"{_STRING.pattern}|-?\d[\d.eE+\-]{{6,}}+", re.DOTALL)
_NO_SPACE = re.compile(r"[^ \t\r\n]")
# What carries bytes, and not words.
_BYTES = ("data", "blob")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]*={0,2}")
SHORTEST_BYTES = 200
# Looked at before anything else: most texts begin with a letter.
_BEGIN = frozenset("{[ \t\r\n\ufeff")
_OPENS = re.compile(r"\ufeff?\s*[{\[]")


class JsonString(NamedTuple):
    """A text of the document. `name`: of the member that it is the value of, or stands in a list
    of; its own for a member's name."""

    start: int
    end: int
    text: str
    name: str
    is_name: bool


def strings(
    document: str, *, with_bytes: bool = False, with_numbers: bool = False, name: str = ""
) -> Iterator[JsonString]:
    """All texts, in order. Those that are bytes in base 64 are left out, unless `with_bytes`. Long
    numbers, as they are written, `with_numbers`. `name`: of the member that has the document."""
    pattern = _STRING_OR_NUMBER if with_numbers else _STRING
    for match in pattern.finditer(document):
        if match.group()[0] != '"':
            yield JsonString(match.start(), match.end(), match.group(), name, False)
            continue
        text = _decoded(match.group())
        following = _NO_SPACE.search(document, match.end())
        if following is not None and following.group() == ":":
            name = text
            yield JsonString(match.start(), match.end(), text, name, True)
        elif with_bytes or not _is_bytes(name, text):
            yield JsonString(match.start(), match.end(), text, name, False)


def replaced(document: str, change: Callable[[JsonString], str]) -> str:
    """The document with each text as `change` returns it."""
    return _replaced(document, strings(document), change)


def replaced_within(one: JsonString, change: Callable[[JsonString], str]) -> str:
    """The document that a text is, with each of its texts as `change` returns it. A long number
    that changes becomes a text."""
    found = strings(one.text, with_numbers=True, name=one.name)
    return _replaced(one.text, found, change)


def _replaced(
    document: str, found: Iterable[JsonString], change: Callable[[JsonString], str]
) -> str:
    parts, at = [], 0
    for one in found:
        text = change(one)
        if text != one.text:
            parts += [document[at : one.start], encoded(text)]
            at = one.end
    if not parts:
        return document
    return "".join([*parts, document[at:]])


def is_document(text: str) -> bool:
    """Whether a text is an object or a list of JSON, written as text."""
    if text[:1] not in _BEGIN or not (_OPENS.match(text) and text.rstrip()[-1] in "}]"):
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return _is_lenient(text)
    return True


def _is_lenient(text: str) -> bool:
    """Whether other readers take it for JSON: with NaN, a byte order mark or lone surrogates."""
    try:
        json.loads(text.lstrip("\ufeff"), parse_int=str, parse_float=str, strict=False)
    except ValueError:
        return False
    except RecursionError:
        # Its texts are where they are, however deep.
        return True
    return True


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
