"""JSON with its numbers as they were written: 1.10 stays 1.10, whatever a float would make of it.

For documents that people change piece by piece. Objects and arrays are plain dicts and lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from core import strict_json, text
from core.kept_english import gettext

_is_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written."""

    text: str


class MissingValue:
    """A value that is not there, which is something else than null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = MissingValue()


@dataclass(frozen=True, slots=True)
class JsonDifference:
    """One place where two documents differ; ABSENT where one of them has nothing."""

    path: tuple[str | int, ...]
    before: Any
    after: Any


def loads(data: bytes) -> Any:
    """Raises strict_json.Ambiguous where parsers could differ."""
    strict_json.loads(data)
    return json.loads(data, parse_int=Number, parse_float=Number)


def exact(value: Any) -> Any:
    """The parsed value with numbers in their shortest form."""
    if isinstance(value, dict):
        return {name: exact(member) for name, member in value.items()}
    if isinstance(value, list):
        return [exact(item) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Number(json.dumps(value))
    return value


def number(written: str) -> Number:
    """Raises strict_json.Ambiguous for anything but a number that every parser reads alike."""
    if _is_number(written) is None:
        raise strict_json.Ambiguous(gettext("This is not a number."))
    strict_json.loads(written.encode())
    return Number(written)


def dumps(value: Any, *, after: str = "") -> str:
    """On one line; `after`: what stands behind commas and colons."""
    return "".join(_tokens(value, f",{after}", f":{after}"))


def pretty(value: Any) -> str:
    """Indented JSON to read and edit, with hidden characters escaped."""
    return laid_out(value, string=literal)


def plain(string: str) -> str:
    return json.dumps(string, ensure_ascii=False)


def literal(string: str) -> str:
    """A JSON string in which every character that could hide is written as an escape."""
    return text.escaped(plain(string))


def laid_out(value: Any, indent: str = "", *, string: Callable[[str], str] = plain) -> str:
    inner = indent + "  "
    match value:
        case dict() if value:
            members = [
                f"{inner}{string(name)}: {laid_out(member, inner, string=string)}"
                for name, member in value.items()
            ]
            return "{\n" + ",\n".join(members) + f"\n{indent}}}"
        case list() if value:
            items = [inner + laid_out(item, inner, string=string) for item in value]
            return "[\n" + ",\n".join(items) + f"\n{indent}]"
        case str():
            return string(value)
        case _:
            return dumps(value)


def changes(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[JsonDifference]:
    """The paths at which the two differ; lists of different length differ as a whole."""
    match before, after:
        case dict(), dict():
            for name in [*before, *(name for name in after if name not in before)]:
                yield from changes(before.get(name, ABSENT), after.get(name, ABSENT), (*path, name))
        case list(), list() if len(before) == len(after):
            for n, (old, new) in enumerate(zip(before, after, strict=True)):
                yield from changes(old, new, (*path, n))
        case _ if type(before) is not type(after) or before != after:
            yield JsonDifference(path, before, after)


def _tokens(value: Any, comma: str, colon: str) -> Iterator[str]:
    match value:
        case Number():
            yield value.text
        case dict():
            yield "{"
            for n, (name, member) in enumerate(value.items()):
                yield f"{comma if n else ''}{plain(name)}{colon}"
                yield from _tokens(member, comma, colon)
            yield "}"
        case list():
            yield "["
            for n, item in enumerate(value):
                if n:
                    yield comma
                yield from _tokens(item, comma, colon)
            yield "]"
        case _:
            yield json.dumps(value, ensure_ascii=False)
