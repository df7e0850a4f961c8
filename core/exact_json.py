"""JSON with its numbers as they were written: 1.10 stays 1.10, whatever a float would make of it.

For documents that people change piece by piece. Objects and arrays are plain dicts and lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from core import strict_json, text

_is_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written."""

    text: str


class Absent:
    """A value that is not there, which is something else than null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Change:
    """One place where two documents differ; ABSENT where one of them has nothing."""

    path: tuple[str | int, ...]
    before: Any
    after: Any


def loads(data: bytes) -> Any:
    """Raises strict_json.Ambiguous where parsers could differ."""
    strict_json.loads(data)
    return json.loads(data, parse_int=Number, parse_float=Number)


def exact(value: Any) -> Any:
    """What another parser read, its numbers in their shortest form."""
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
        raise strict_json.Ambiguous("This is not a number.")
    strict_json.loads(written.encode())
    return Number(written)


def dumps(value: Any) -> str:
    return "".join(_written(value))


def pretty(value: Any, indent: str = "") -> str:
    """For people to read and change: laid out, and nothing in it hides."""
    inner = indent + "  "
    match value:
        case dict() if value:
            lines = [f"{inner}{literal(k)}: {pretty(v, inner)}" for k, v in value.items()]
            return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
        case list() if value:
            lines = [inner + pretty(item, inner) for item in value]
            return "[\n" + ",\n".join(lines) + f"\n{indent}]"
        case str():
            return literal(value)
        case _:
            return dumps(value)


def literal(string: str) -> str:
    """A JSON string in which every character that could hide is written as an escape."""
    return text.escaped(json.dumps(string, ensure_ascii=False))


def changes(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """Where the two differ, as deep as they are alike; lists of other lengths differ as a whole."""
    match before, after:
        case dict(), dict():
            for name in [*before, *(name for name in after if name not in before)]:
                yield from changes(before.get(name, ABSENT), after.get(name, ABSENT), (*path, name))
        case list(), list() if len(before) == len(after):
            for n, (old, new) in enumerate(zip(before, after, strict=True)):
                yield from changes(old, new, (*path, n))
        case _ if type(before) is not type(after) or before != after:
            yield Change(path, before, after)


def _written(value: Any) -> Iterator[str]:
    match value:
        case Number():
            yield value.text
        case dict():
            yield "{"
            for n, (name, member) in enumerate(value.items()):
                yield f"{',' if n else ''}{json.dumps(name, ensure_ascii=False)}:"
                yield from _written(member)
            yield "}"
        case list():
            yield "["
            for n, item in enumerate(value):
                if n:
                    yield ","
                yield from _written(item)
            yield "]"
        case _:
            yield json.dumps(value, ensure_ascii=False)
