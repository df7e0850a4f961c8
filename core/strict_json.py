"""JSON that every parser reads the same way, or none.

Python, JavaScript, Go and PostgreSQL disagree about duplicate keys, large integers, NaN and
lone surrogates; a document that two of them could read differently could show one thing to an
approver and do another. Source: RFC 7493 (I-JSON).
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.scanner import c_make_scanner  # type: ignore[attr-defined]
from typing import Any, NoReturn

import orjson

from core import json_words
from core.kept_english import gettext as _

MAX_DEPTH = 32
MAX_INTEGER = 2**53 - 1
_SPACE = re.compile(r"[ \t\n\r]*").match
# With every digit as a nought, whatever may be an integer beyond MAX_INTEGER looks alike: a fifth
# of what a regular expression costs.
_NOUGHTS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))
_LONG_NUMBER = b"0" * 16

_TOO_DEEP = _("The document is nested deeper than %(levels)d levels.")

Span = tuple[int, int]


class Ambiguous(ValueError):
    """Says what was wrong in a sentence that an agent can act upon."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(k for k, _value in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        said = _("The name %(name)s appears twice in one object.")
        raise Ambiguous(said % {"name": json.dumps(twice)})
    return result


def _integer(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > MAX_INTEGER:
        said = _(
            "The integer %(number)s is beyond ±(2^53 − 1), where parsers begin to disagree: send "
            "it as a string."
        )
        raise Ambiguous(said % {"number": text[:40]})
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        said = _("The number %(number)s is too large to be exact.")
        raise Ambiguous(said % {"number": text[:40]})
    return value


def _constant(text: str) -> NoReturn:
    raise Ambiguous(_("“%(word)s” is not JSON.") % {"word": text})


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
_scan = c_make_scanner(_decoder)
# Not int: more than 4,300 digits would be an error, and the value is not looked at.
_lenient = c_make_scanner(json.JSONDecoder(parse_int=float))


def loads(data: bytes) -> Any:
    """The value of `data`; raises Ambiguous with the reason where two parsers could differ."""
    value = plain(data)
    return _judged(data) if value is None else value


def plain(data: bytes) -> Any:
    """The value of a document that is written as we would write it, as most programs do; None for
    every other one.

    Written again it is the same bytes: so nothing of it was dropped, as a name that comes twice
    would have been, nothing was rounded, and every value in it is written as we would write that.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if orjson.dumps(value) != data or _LONG_NUMBER in data.translate(_NOUGHTS) or _is_deep(data):
        return None
    return value


def _judged(data: bytes) -> Any:
    text = _text(data)
    try:
        value, end = _scan(text, _SPACE(text, 0).end())  # type: ignore[union-attr]
    except (StopIteration, json.JSONDecodeError, RecursionError) as error:
        raise Ambiguous(_syntax(error)) from error
    if _SPACE(text, end).end() != len(text):  # type: ignore[union-attr]
        said = _("There is more after the end of the document, at character %(at)d.")
        raise Ambiguous(said % {"at": end})
    _check_surrogates(data, text)
    _check_depth(value, data)
    return value


def _text(data: bytes) -> str:
    if data.startswith(b"\xef\xbb\xbf"):
        raise Ambiguous(_("The document begins with a byte order mark: leave it out."))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Ambiguous(_("Byte %(at)d is not UTF-8.") % {"at": error.start}) from error


def _syntax(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        said = _("Not JSON: %(why)s at character %(at)d.")
        return said % {"why": json_words.describe(error), "at": error.pos}
    if isinstance(error, RecursionError):
        return _TOO_DEEP % {"levels": MAX_DEPTH}
    said = _("Not JSON: a value was expected at character %(at)d.")
    return said % {"at": error.args[0] if error.args else 0}


def _check_surrogates(data: bytes, text: str) -> None:
    if "\\ud" not in text and "\\uD" not in text:
        return
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Ambiguous(_("A string holds half of a surrogate pair.")) from error


def _check_depth(value: Any, data: bytes) -> None:
    if not _is_deep(data):
        return
    level = [value]
    for _level in range(MAX_DEPTH):
        level = [child for v in level if isinstance(v, dict | list) for child in _children(v)]
    if any(isinstance(v, dict | list) for v in level):
        raise Ambiguous(_TOO_DEEP % {"levels": MAX_DEPTH})


def _is_deep(data: bytes) -> bool:
    """Whether there are brackets enough for it."""
    return data.count(b"[") + data.count(b"{") > MAX_DEPTH


def _children(value: dict[str, Any] | list[Any]) -> Any:
    return value.values() if isinstance(value, dict) else value


def spans(text: str, start: int = 0) -> dict[str, Span]:
    """The start and end of each member's value of the object at `start`, in characters.

    For text that parsed before: raises ValueError where it is no object.
    """
    at = _SPACE(text, start).end()  # type: ignore[union-attr]
    if text[at : at + 1] != "{":
        raise ValueError("not an object")
    at = _SPACE(text, at + 1).end()  # type: ignore[union-attr]
    found: dict[str, Span] = {}
    while text[at] != "}":
        name, at = scanstring(text, at + 1)
        begin = _SPACE(text, _SPACE(text, at).end() + 1).end()  # type: ignore[union-attr]
        _value, end = _lenient(text, begin)
        found[name] = (begin, end)
        at = _SPACE(text, end).end()  # type: ignore[union-attr]
        if text[at] == ",":
            at = _SPACE(text, at + 1).end()  # type: ignore[union-attr]
    return found


def items(text: str, start: int = 0) -> list[str]:
    """Each item of the array at `start`, in its very characters. For text that parsed before."""
    found = []
    at = _SPACE(text, text.index("[", start) + 1).end()  # type: ignore[union-attr]
    while text[at] != "]":
        _value, end = _lenient(text, at)
        found.append(text[at:end])
        at = _SPACE(text, end).end()  # type: ignore[union-attr]
        if text[at] == ",":
            at = _SPACE(text, at + 1).end()  # type: ignore[union-attr]
    return found


def one_line(raw: str) -> bytes:
    """The same tokens on one line, as newline-framed transports need.

    A raw line break can only stand between tokens: inside strings JSON forbids it.
    """
    return raw.replace("\n", " ").replace("\r", " ").encode()
