"""All that a value says as text: also numbers, and what JSON or base64 within its texts holds.

Each level of nesting is at most as large as the one before, and levels are few: the time is linear
in the size of the value.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

# JSON or base64 in a text, whose texts hold some again.
LEVELS_MAX = 4
# Shorter base64 has no room for a secret.
_SHORTEST = 20
_BASE64 = re.compile(r"(?:data:[^,]{0,200};base64,)?([A-Za-z0-9+/_\-\s]{20,}+)(?:={1,2}\s*)?")
_URL_SAFE = str.maketrans("-_", "+/")
_CONTAINERS = ("{", "[", '"')

NamedText = tuple[str, str]


class NestedTooDeep(Exception):
    """A text holds another, which holds another: more often than is looked at."""


def texts_within(value: Any) -> Iterator[NamedText]:
    """Each text with the name of the member that has it, or that has the list it stands in; names
    of members too, with no name of their own. Raises NestedTooDeep."""
    found = [("", value)]
    for _level in range(LEVELS_MAX):
        texts = [one for name, inner in found for one in _texts(name, inner)]
        yield from texts
        found = [(name, inner) for name, text in texts for inner in _decoded(text)]
    if any(_says_something(inner) for _name, inner in found):
        raise NestedTooDeep


def _says_something(decoded: Any) -> bool:
    """Most words of a length are base64 by accident, of bytes that are no text."""
    return not isinstance(decoded, str) or (decoded.isascii() and decoded.isprintable())


def _texts(name: str, value: Any) -> Iterator[NamedText]:
    stack = [(name, value)]
    while stack:
        at, one = stack.pop()
        if isinstance(one, dict):
            yield from (("", str(name)) for name in one)
            stack += one.items()
        elif isinstance(one, list):
            stack += [(at, inner) for inner in one]
        elif isinstance(one, str):
            yield at, one
        elif isinstance(one, (int, float)) and not isinstance(one, bool):
            yield at, _write_number(one)


def _write_number(number: float) -> str:
    """With all digits of a whole number, however it was written."""
    if isinstance(number, float) and number.is_integer():
        return format(number, ".0f")
    return str(number)


def _decoded(text: str) -> Iterator[Any]:
    if text.lstrip()[:1] in _CONTAINERS:
        yield from _of_json(text)
    elif len(text) >= _SHORTEST and (match := _BASE64.fullmatch(text)):
        yield from _of_base64(match[1])


def _of_json(text: str) -> Iterator[Any]:
    try:
        # As they are written, since no number is too large then.
        yield json.loads(text, parse_int=str, parse_float=str, strict=False)
    except ValueError:
        return
    except RecursionError as error:
        raise NestedTooDeep from error


def _of_base64(text: str) -> Iterator[str]:
    plain = "".join(text.split()).rstrip("=").translate(_URL_SAFE)
    try:
        body = base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return
    try:
        yield body.decode()
    except UnicodeDecodeError:
        # Of other bytes, those that are letters.
        yield body.decode("latin-1")
