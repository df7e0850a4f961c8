"""All that a value says as text: also numbers, and what JSON, base64, hexadecimal digits, percent
encoding or escapes within its texts hold.

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
from urllib.parse import unquote

# Such a text in a text, whose texts hold some again.
LEVELS_MAX = 4
# Shorter base64 has no room for a secret.
_SHORTEST = 20
_BASE64 = re.compile(r"(?:data:[^,]{0,200};base64,)?([A-Za-z0-9+/_\-\s]{20,}+)(?:={1,2}\s*)?")
# Within a sentence or an address.
_BASE64_WITHIN = re.compile(r"(?<![A-Za-z0-9+/_\-])[A-Za-z0-9+/_\-]{20,}+={0,2}")
# In lines, as mails have it: what begins in one goes on in the next.
_BASE64_LINES = re.compile(
    r"(?<![A-Za-z0-9+/_\-])(?:[A-Za-z0-9+/_\-]{20,100}+\r?\n[ \t]{0,9}+)+"
    r"[A-Za-z0-9+/_\-]{1,100}+={0,2}"
)
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){16,}+(?![0-9A-Fa-f])")
# Of JSON that is cut off, or stands in a text; and as programs write bytes.
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
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


def texts_in_base64(text: str) -> Iterator[str]:
    """Sentences that stand in a text as base64."""
    for one in _BASE64_WITHIN.findall(text) if len(text) >= _SHORTEST else ():
        yield from (plain for plain in _of_base64(one) if " " in plain and plain.isprintable())


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
    if text.lstrip()[:1] in _CONTAINERS and (found := [*_of_json(text)]):
        yield from found
        return
    if len(text) >= _SHORTEST:
        whole = _BASE64.fullmatch(text)
        for one in [whole[1]] if whole else _base64_within(text):
            yield from _of_base64(one)
        for one in _HEX.findall(text):
            yield from _of_hex(one)
    if "%" in text and (plain := unquote(text)) != text:
        yield plain
    if "\\" in text and (plain := _ESCAPE.sub(_unescaped, text)) != text:
        yield plain


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1] or match[2], 16))


def _base64_within(text: str) -> list[str]:
    return _BASE64_WITHIN.findall(text) + (_BASE64_LINES.findall(text) if "\n" in text else [])


def _of_hex(text: str) -> Iterator[str]:
    """Yields the text that hexadecimal digits spell; those of a hash spell none."""
    body = bytes.fromhex(text)
    if body.isascii() and (plain := body.decode()).isprintable():
        yield plain


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
