"""Letters as HTML and Markdown spell them: `&#64;` is an @, and `\\_` an underscore."""

from __future__ import annotations

import re
from bisect import bisect_right
from html import unescape
from typing import NamedTuple

# Of the names those of signs that secrets and addresses have, and of what nobody sees.
NAMES = (
    *("commat", "lowbar", "period", "colon", "sol", "hyphen", "dash", "equals", "plus"),
    *("ZeroWidthSpace", "shy", "zwj", "zwnj"),
)
# What Markdown puts a backslash before, and words of secrets have in them.
SIGNS = "_.+=@:/~*#-"
_SPELLED = re.compile(
    r"&(?:#(?:\d{1,7}|[xX][0-9A-Fa-f]{1,6});?" rf"|(?:{'|'.join(NAMES)});)|\\(?=[{SIGNS}])"
)
# Quotes, brackets, spaces and dashes, which most pages spell, are in no secret.
_COMMON = r"(?!(?:3[489]|6[02]|160|82[12]\d|x2[27]);)"
_TELLS = re.compile(rf"&(?:#{_COMMON}|(?:{'|'.join(NAMES)});)|\\[{SIGNS}]")
# In a document of JSON the backslash is written as two.
_IN_DOCUMENT = re.compile(rf"&(?:#{_COMMON}|(?:{'|'.join(NAMES)});)|\\\\[{SIGNS}]")
_BACKSLASHES = re.compile(rf"\\\\(?=[{SIGNS}])")


def could_spell(document: str) -> bool:
    """Whether a text of this JSON document spells a letter."""
    return ("&" in document or "\\" in document) and _IN_DOCUMENT.search(document) is not None


def with_spelled(document: str) -> str:
    """The document, and after it all its words as they are read: for looking for words alone."""
    return f"{document}\n{_BACKSLASHES.sub('', unescape(document))}"


class _Piece(NamedTuple):
    """A stretch of the text as it is read, and where it is written: letter by letter the same,
    unless it `is_spelled`."""

    begin: int
    start: int
    end: int
    is_spelled: bool


class SpelledOut:
    """A text with the letters that it spells."""

    def __init__(self, text: str) -> None:
        self._pieces, parts = [], []
        at = length = 0
        for spelled in _SPELLED.finditer(text):
            self._pieces.append(_Piece(length, at, spelled.start(), is_spelled=False))
            parts.append(text[at : spelled.start()])
            length += spelled.start() - at
            letter = unescape(spelled.group()) if spelled.group()[0] == "&" else ""
            if letter:
                self._pieces.append(_Piece(length, *spelled.span(), is_spelled=True))
                parts.append(letter)
                length += len(letter)
            at = spelled.end()
        self._pieces.append(_Piece(length, at, len(text), is_spelled=False))
        self._begins = [piece.begin for piece in self._pieces]
        self.text = "".join([*parts, text[at:]])

    def stretch(self, start: int, end: int) -> tuple[int, int]:
        """Where the text has it, as it is written."""
        return self._span(start)[0], self._span(end - 1)[1]

    def _span(self, place: int) -> tuple[int, int]:
        piece = self._pieces[bisect_right(self._begins, place) - 1]
        if piece.is_spelled:
            return piece.start, piece.end
        at = piece.start + place - piece.begin
        return at, at + 1


def spelled_out(text: str) -> SpelledOut | None:
    """Returns None where it spells nothing that a secret could have."""
    has_any = ("&" in text or "\\" in text) and _TELLS.search(text)
    return SpelledOut(text) if has_any else None
