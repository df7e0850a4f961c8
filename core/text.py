"""Text from agents and upstream servers, split so that nothing in it can hide."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from core import homoglyphs

# Code points that draw nothing, draw like a plain space, reorder their neighbours or command a
# terminal. Default_Ignorable_Code_Point of Unicode 16, and what it leaves out: C0 and C1 controls
# (except tab and newline), spaces that pass for a space, blanks with a glyph that is empty,
# format characters outside the property, private use, non-characters and lone surrogates.
_RANGES = {
    "control": [(0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0x2028, 0x2029)],
    "bidi": [(0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)],
    "space": [
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x2000, 0x200A),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
    ],
    "selector": [(0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)],
    "tag": [(0xE0000, 0xE00FF), (0xE01F0, 0xE0FFF)],
    "unseen": [
        (0xAD, 0xAD),
        (0x034F, 0x034F),
        (0x0600, 0x0605),
        (0x06DD, 0x06DD),
        (0x070F, 0x070F),
        (0x0890, 0x0891),
        (0x08E2, 0x08E2),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x200B, 0x200D),
        (0x2060, 0x2065),
        (0x206A, 0x206F),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xFDD0, 0xFDEF),
        (0xFEFF, 0xFEFF),
        (0xFFA0, 0xFFA0),
        (0xFFF0, 0xFFFC),
        (0xFFFE, 0xFFFF),
        (0x110BD, 0x110BD),
        (0x110CD, 0x110CD),
        (0x13430, 0x1343F),
        (0x16FE4, 0x16FE4),
        (0x1BCA0, 0x1BCA3),
        (0x1D159, 0x1D159),
        (0x1D173, 0x1D17A),
    ],
    "surrogate": [(0xD800, 0xDFFF)],
    "private": [(0xE000, 0xF8FF), (0xF0000, 0x10FFFF)],
}


def is_storable(text: str) -> bool:
    return _UNSTORABLE.search(text) is None


def of_kinds(*kinds: str) -> str:
    """The inside of a character class that has all of these kinds."""
    ranges = (one for kind in kinds for one in _RANGES[kind])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


# NUL, and halves of pairs: no column of the database takes them.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_HIDDEN = re.compile(f"[{of_kinds(*_RANGES)}]+")
_MARKS = {*_RANGES, "lookalike"}
_BY_START = sorted((first, kind) for kind, ranges in _RANGES.items() for first, _ in ranges)
_STARTS = [first for first, _ in _BY_START]
# A page of more marked stretches than this would take seconds to draw and help nobody.
_MARKED_LIMIT = 4000


class Segment(NamedTuple):
    """A stretch of text to show; `kind` is empty for text that shows itself."""

    text: str
    kind: str = ""

    @property
    def is_mark(self) -> bool:
        """Ours, in ⟦ ⟧, in place of what it names: text may hold the same characters itself."""
        return self.kind in _MARKS


def reveal(text: str) -> list[Segment]:
    """The same text, with what could hide or pass for something else written out in ⟦ ⟧."""
    segments: list[Segment] = []
    start = 0
    odd = homoglyphs.suspects(text)
    for match in _HIDDEN.finditer(text):
        if len(segments) > _MARKED_LIMIT:
            break
        segments += _plain(text, start, match.start(), odd)
        segments += _marked(match.group())
        start = match.end()
    if len(segments) > _MARKED_LIMIT:
        return [*segments, Segment(_spelled_out(text[start:]))]
    return segments + _plain(text, start, len(text), odd)


def _plain(text: str, start: int, end: int, odd: list[int]) -> list[Segment]:
    """A stretch in which every character shows itself, and some perhaps as another."""
    found = []
    for at in odd[bisect_left(odd, start) : bisect_left(odd, end)][:_MARKED_LIMIT]:
        if at > start:
            found.append(Segment(text[start:at]))
        found.append(Segment(f"⟦{text[at]} U+{ord(text[at]):04X}⟧", "lookalike"))
        start = at + 1
    if start < end:
        found.append(Segment(text[start:end]))
    return found


def _marked(run: str) -> Iterator[Segment]:
    if len(run) > _MARKED_LIMIT:
        yield Segment(_spelled(run), kind_of(run[0]))
        return
    for kind, characters in groupby(run, key=kind_of):
        yield Segment(_spelled("".join(characters)), kind)


def kind_of(character: str) -> str:
    """The kind of a character that could hide."""
    return _BY_START[bisect_right(_STARTS, ord(character)) - 1][1]


def revealed(text: str) -> str:
    """`reveal()` for places that hold no markup: titles, attributes, logs, a terminal."""
    if text.isascii() and not _HIDDEN.search(text):
        return text
    return "".join(segment.text for segment in reveal(text))


def _spelled_out(text: str) -> str:
    return _HIDDEN.sub(lambda match: _spelled(match.group()), text)


def escaped(json: str) -> str:
    """JSON text in which every character that could hide is written as \\uXXXX."""
    return _HIDDEN.sub(lambda match: _units(match.group()), json)


def _units(characters: str) -> str:
    pairs = characters.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pairs[n : n + 4]}" for n in range(0, len(pairs), 4))


def lookalike_count(text: str) -> int:
    return len(homoglyphs.suspects(text))


def hidden_count(text: str) -> int:
    return sum(len(match.group()) for match in _HIDDEN.finditer(text))


def _spelled(characters: str) -> str:
    return "".join(f"⟦U+{ord(character):04X}⟧" for character in characters)
