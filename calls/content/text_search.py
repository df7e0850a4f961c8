"""Search in a long text of a result: the lines that have the words, for a form without scripts."""

from __future__ import annotations

from typing import NamedTuple

# Shorter ones are read at a glance.
LONG = 2_000
LINES_MAX = 100
LINE_MAX = 400


class FoundLine(NamedTuple):
    number: int
    text: str


class FoundLines(NamedTuple):
    lines: list[FoundLine]
    # How many have it, shown or not.
    total: int


def find_lines(text: str, wanted: str) -> FoundLines:
    """Lines that have the text, in either case; a long one from a little before it on."""
    sought = wanted.casefold()
    found = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if sought in line.casefold()
    ]
    lines = [FoundLine(number, _around(line, sought)) for number, line in found[:LINES_MAX]]
    return FoundLines(lines, len(found))


def _around(line: str, sought: str) -> str:
    first = max(0, line.casefold().find(sought) - LINE_MAX // 4)
    shown = line[first : first + LINE_MAX]
    return ("…" if first else "") + shown + ("…" if first + LINE_MAX < len(line) else "")
