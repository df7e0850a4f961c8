"""One look at a short document that says whether anything could be found in it.

All that texts are looked through for begins, or has in it, a few letters: these are alternatives of
one pattern. Each alternative begins with its rarest letter, since a pattern of which every
alternative begins with a letter is tried nowhere else. Of a longer document, asking for one after
the other takes less time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from inspection import secret_names, spelling
from inspection.secrets import DETECTORS

# The rarest first; what is not here is rarer than all of these.
_COMMON = b"~%@=#+ZQXJqKzjxGWYVUBPHFLMDNREOTIkCSAvw_-&bygfpmuclhdrnsioat/.:e <0123456789"
_FRAMES = rb"(?:(?:[ ]|\\{1,16}t){1,40}(?:at|from) |#0 )"

# A letter, and what stands around it.
Part = tuple[bytes, bytes]
# Others than those of ends of lines, tabs, quotes and backslashes: they spell or hide something.
ESCAPES: tuple[Part, ...] = (
    (b"\\", rb'[^nt"\\]'),
    # Letters that HTML spells.
    (b"&", b"#"),
    *((b"&", name.encode() + b";") for name in spelling.NAMES),
)
PERSONAL: tuple[Part, ...] = (
    (b"@", b""),
    (b"%", b"40"),
    *((b"%d" % digit, rb"[0-9 \-.()]{6}") for digit in range(10)),
)
TRACEBACKS: tuple[Part, ...] = (
    (b"(", rb"most recent"),
    (b"g", b"oroutine "),
    (b'"', _FRAMES),
    (b"\\", b"n" + _FRAMES),
)
# Readers of addresses leave ends of lines and tabs out.
LINKS: tuple[Part, ...] = (
    (b"/", rb"(?:\\[nt])*/"),
    (b"\\", rb"\\"),
    (b".", rb"(?<=[wW][wW]\.)"),
    (b"&", rb"[#cCsSbBtTnN]"),
    (b":", rb"(?:(?<=[tTpPsSwW][pPsS]:)|(?<=[lL][eE]:)|(?<=\\[nt]:)|(?<=\\[nt].:))"),
)


def literal(text: str, *, folds: bool) -> Iterator[Part]:
    """The parts that find this text; `folds`: in capital and in small letters."""
    mark = text.encode()
    at = min(range(len(mark)), key=lambda place: _COMMON.find(mark[place]))
    letter = mark[at : at + 1]
    for first in sorted({letter.lower(), letter.upper()} if folds else {letter}):
        before = _written(mark[:at], folds=folds)
        behind = rb"(?<=%b%b)" % (before, re.escape(first)) if before else b""
        yield first, behind + _written(mark[at + 1 :], folds=folds)


def _written(text: bytes, *, folds: bool) -> bytes:
    return b"".join(_letter(text[at : at + 1], folds=folds) for at in range(len(text)))


def _letter(one: bytes, *, folds: bool) -> bytes:
    if folds and one.isalpha():
        return b"[%b%b]" % (one.lower(), one.upper())
    return re.escape(one)


def _secrets() -> tuple[Part, ...]:
    marks = [(mark, one.folds) for one in DETECTORS for mark in one.marks]
    marks += [(stem, True) for stem in (*secret_names.STEMS, secret_names.RARE_STEM)]
    return tuple(part for mark, folds in sorted(set(marks)) for part in literal(mark, folds=folds))


SECRETS = _secrets()


def pattern(parts: Iterable[Part]) -> re.Pattern[bytes]:
    """Finds a place in a document that reads as it is written where one of these parts stands."""
    by_letter = defaultdict(list)
    for letter, around in parts:
        by_letter[letter].append(around)
    return re.compile(
        b"|".join(re.escape(one) + b"(?:%b)" % b"|".join(by_letter[one]) for one in by_letter)
    )
