"""Characters that a model reads and a person does not see, and commands to a terminal.

What languages and emoji need is left alone: joiners within Persian or Indic words and within
emoji, one selector after what it selects, marks of direction amid right-to-left text and pairs of
isolates around it, the ends of words in Thai and its like. So are percentages in place of others.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple
from unicodedata import normalize

from core.text import kind_of, of_kinds

# Escape sequences of ECMA-48: CSI, OSC and its like, and the short ones. Each part of one is of
# characters that end the part before, so that nothing is looked at twice.
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_KINDS = ("control", "bidi", "selector", "tag", "unseen", "surrogate")
_RUN = re.compile(f"[{of_kinds(*_KINDS)}]+")
_ASCII_RUN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
# Without the mark of Arabic, which nobody sees.
_RTL = re.compile(
    "[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]"
)
# Written without spaces: a character that nobody sees ends a word.
_SPACELESS = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aad\ua9e0-\ua9ff\uaa60-\uaadf]"
)
# Of a text that goes the other way than the one around it, and no further than this.
_ISOLATED_MOST = 200
_ISOLATED = re.compile(
    f"[\u2066-\u2068][^\u2066-\u2069\u202a-\u202e\\n]{{0,{_ISOLATED_MOST}}}\u2069"
)
# A line of progress, over which the next is written.
_PROGRESS_MOST = 200
_COUNTS = re.compile(r"\d ?%|\d/\d")
_NO_COUNTS = dict.fromkeys((*b"0123456789. #=>-", *range(9600, 9632)))
# Letters that patterns take for others, whatever their case.
CASELESS = str.maketrans("\u0130\u0131\u017f", "iis")
# A run of more is no spelling of any language: it is taken as a whole.
LONG_RUN = 8
# Signs that are seen, though Unicode calls them formats; and what stands for an object.
_SEEN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\ufffc")


# These show as a blank, or end a line.
_BLANKS = frozenset("\x0b\x85\u115f\u1160\u2800\u3164\uffa0")


class Span(NamedTuple):
    """A stretch of text that somebody could miss. `kind`: ansi, or a kind of core.text."""

    start: int
    end: int
    kind: str


def spans(text: str) -> list[Span]:
    """In order, none within another."""
    run = _ASCII_RUN if text.isascii() else _RUN
    if not run.search(text):
        return []
    found: list[Span] = []
    at = 0
    # Once for the text: looked for between any two commands it would be looked for in all of it.
    rtl = _RTL.search(text) is not None
    for ansi in _ANSI.finditer(text) if "\x1b" in text or "\x9b" in text else ():
        found += _characters(run, text, at, ansi.start(), rtl=rtl)
        found.append(Span(ansi.start(), ansi.end(), "ansi"))
        at = ansi.end()
    return [*found, *_characters(run, text, at, len(text), rtl=rtl)]


# None of them is seen, wherever it stands; the ends of lines are no part of it.
_UNSEEN = (
    f"(?![{''.join(sorted(_SEEN))}\u2028\u2029])"
    f"[{of_kinds('bidi', 'selector', 'tag', 'unseen', 'surrogate')}"
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_COULD_DISGUISE = re.compile(_UNSEEN)
_DISGUISE = re.compile(f"{_ANSI.pattern}|(?:{_UNSEEN})+")
# Deleting all others is many times faster than looking for a pattern.
_VISIBLE_ASCII = bytes([*b"\t\n\r", *range(0x20, 0x7F)])


# Letters and punctuation of Chinese, Japanese and Korean that stand for nothing but themselves: no
# wide letters or digits, and nothing that folds to ASCII or reads as a mark.
_CJK = "·—“”…、。〈-】〔〕ぁ-ゖァ-ヺー㐀-䶿一-鿿가-힣！（），：；？～￥"
_NOT_PLAIN = re.compile(rf"[^\t\n\r -~{_CJK}]")


# Letters and digits of full width, of mathematics and in circles or squares, and wide or narrow
# spaces: read as plain ones.
_WIDE = (
    "\uff10-\uff19\uff20-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\u24b6-\u24e9\U0001f130-\U0001f149"
)
_ODD_SPACES = "\xa0\u2000-\u200a\u202f\u205f\u3000"
# Two patterns, each with a set of characters first: together they take three times as long.
_HAS_WIDE = re.compile(f"[{_WIDE}]")
_HAS_ODD_SPACE = re.compile(f"[{_ODD_SPACES}](?<=[0-9A-Z].)(?=[0-9A-Z])")
_PLAIN = {
    code: letter
    for code in (
        *(0xA0, *range(0x2000, 0x3001), *range(0xFF01, 0xFF5F)),
        *(*range(0x1D400, 0x1D800), *range(0x1F130, 0x1F14A)),
    )
    if (letter := normalize("NFKC", chr(code))).isascii()
    and len(letter) == 1
    and (letter == " " or code > 0x3000 or 0x24B6 <= code <= 0x24E9)
}


def could_disguise(text: str) -> bool:
    """Whether it could read otherwise than it is written."""
    return _has_unseen(text) or _could_be_plain(text)


def is_plain_ascii(body: bytes) -> bool:
    """Whether all of it is seen: nothing but ASCII, and of its control characters only those that
    end lines and fields."""
    return body.isascii() and not body.translate(None, _VISIBLE_ASCII)


def is_plain(body: bytes) -> bool:
    """Whether all of it is seen and read as it is written: ASCII, Chinese, Japanese and Korean."""
    if body.isascii():
        # As `is_plain_ascii`: each function on a result's way costs all of them.
        return not body.translate(None, _VISIBLE_ASCII)
    return _NOT_PLAIN.search(body.decode()) is None


def _has_unseen(text: str) -> bool:
    if text.isascii():
        return not is_plain_ascii(text.encode())
    return _COULD_DISGUISE.search(text) is not None


def _could_be_plain(text: str) -> bool:
    if text.isascii():
        return False
    return bool(_HAS_WIDE.search(text) or _HAS_ODD_SPACE.search(text))


def plain(text: str) -> str:
    """The text with plain letters, digits and spaces for their wide and mathematical forms, each in
    its place. The same text where it has none."""
    if not _could_be_plain(text):
        return text
    return text.translate(_PLAIN)


class Undisguised:
    """A text without any character that is not seen, whether it belongs there or not."""

    def __init__(self, text: str) -> None:
        parts, self._begins, self._ahead = [], [0], [0]
        at = length = 0
        for hidden in _DISGUISE.finditer(text):
            parts.append(text[at : hidden.start()])
            length += hidden.start() - at
            at = hidden.end()
            self._begins.append(length)
            self._ahead.append(at - length)
        self.text = "".join([*parts, text[at:]])

    def stretch(self, start: int, end: int) -> tuple[int, int]:
        """Where the original has it."""
        return self._place(start), self._place(end - 1) + 1

    def _place(self, at: int) -> int:
        return at + self._ahead[bisect_right(self._begins, at) - 1]


def apart(text: str) -> str:
    """The text with a space for what is not seen: words that nothing else parts."""
    return _DISGUISE.sub(" ", text)


def undisguised(text: str) -> Undisguised | None:
    """Returns None where nothing in the text is unseen."""
    return Undisguised(text) if _has_unseen(text) else None


def counts(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in spans(text):
        found[one.kind] += 1 if one.kind == "ansi" else one.end - one.start
    return found


def without(text: str, found: list[Span], *, show: bool = False) -> str:
    """Without them, or with each written out in ⟦ ⟧. What shows as a blank leaves one."""
    parts, at = [], 0
    for one in found:
        parts.append(text[at : one.start])
        if show:
            parts.append("".join(f"⟦U+{ord(c):04X}⟧" for c in text[one.start : one.end]))
        elif text[one.start] in _BLANKS:
            parts.append(" ")
        at = one.end
    return "".join([*parts, text[at:]])


def _characters(
    run: re.Pattern[str], text: str, start: int, end: int, *, rtl: bool
) -> Iterator[Span]:
    for match in run.finditer(text, start, end):
        if match.end() - match.start() > LONG_RUN and not match.group().isspace():
            yield Span(match.start(), match.end(), kind_of(match.group()[0]))
            continue
        for at in range(match.start(), match.end()):
            kind = kind_of(text[at])
            if not _belongs(text, at, kind, rtl=rtl):
                yield Span(at, at + 1, kind)


def _belongs(text: str, at: int, kind: str, *, rtl: bool) -> bool:
    if kind == "bidi":
        return rtl and (text[at] in "\u200e\u200f\u061c" or _isolates(text, at))
    allowed = _ALLOWED.get(kind)
    return allowed is not None and allowed(text, at)


def _isolates(text: str, at: int) -> bool:
    """One of a pair with no other such character within. What stands in it is read from the right
    only if its letters are."""
    start = at
    if text[at] == "\u2069":
        least = max(0, at - _ISOLATED_MOST - 1)
        start = max(text.rfind(one, least, at) for one in "\u2066\u2067\u2068")
    pair = _ISOLATED.match(text, start) if start >= 0 else None
    if pair is None or pair.end() <= at:
        return False
    return text[start] != "\u2067" or _RTL.search(pair.group()) is not None


def _control(text: str, at: int) -> bool:
    """The end of a line, or of a page."""
    if text[at] == "\r":
        return text[at + 1 : at + 2] == "\n" or _is_progress(text, at)
    return text[at] in "\u2028\u2029\x0c"


def _is_progress(text: str, at: int) -> bool:
    """Whether both sides count the same thing: nothing else is written over."""
    least, most = max(0, at - _PROGRESS_MOST), at + _PROGRESS_MOST
    begin = max(text.rfind("\r", least, at), text.rfind("\n", least, at), least - 1) + 1
    ends = (text.find(one, at + 1, most) for one in "\r\n")
    before = text[begin:at]
    after = text[at + 1 : min((end for end in ends if end >= 0), default=most)]
    if not (_COUNTS.search(before) and _COUNTS.search(after)):
        return False
    return _without_counts(before) == _without_counts(after)


def _without_counts(line: str) -> str:
    return line.translate(_NO_COUNTS)


def _unseen(text: str, at: int) -> bool:
    before, one, after = text[at - 1 : at] if at else "", text[at], text[at + 1 : at + 2]
    if one in _SEEN:
        return True
    if one == "\ufeff":
        return at == 0
    if one == "\u200b":
        return bool(_SPACELESS.match(before) and _SPACELESS.match(after))
    if one == "\xad":
        # Two letters at least stand on both sides, as in all rules of hyphenation.
        sides = text[max(at - 2, 0) : at], text[at + 1 : at + 3]
        return all(len(side) == 2 and side.isalpha() for side in sides)
    if one == "\u2800":
        return "\u2801" <= before <= "\u28ff" or "\u2801" <= after <= "\u28ff" or before == one
    if one in "\u200c\u200d":
        return _joins(before, after)
    if one in "\u115f\u1160\u3164\uffa0":
        return _is_hangul(before) or _is_hangul(after)
    return False


def _joins(before: str, after: str) -> bool:
    if not before or not after:
        return False
    emoji = _is_pictogram(before) and _is_pictogram(after)
    script = before > "\u0590" and after > "\u0590" and _is_letter(before) and _is_letter(after)
    # A word of Persian ends in one before a space or a stop.
    trailing = before > "\u0590" and _is_letter(before) and not after.isalpha()
    return emoji or script or trailing


def _is_letter(one: str) -> bool:
    # Vowel signs of Indic scripts and their virama are marks.
    return one.isalpha() or "\u0900" <= one <= "\u0dff" or "\u064b" <= one <= "\u0670"


def _is_pictogram(one: str) -> bool:
    return "\u2190" <= one <= "\u2bff" or one == "\ufe0f" or "\U0001f000" <= one <= "\U0001faff"


def _is_hangul(one: str) -> bool:
    return "\u1100" <= one <= "\u11ff" or "\u3130" <= one <= "\u318f" or "\uac00" <= one <= "\ud7ff"


def _selector(text: str, at: int) -> bool:
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if not before or _is_selector(before) or (after and _is_selector(after)):
        return False
    if text[at] >= "\U000e0100":
        return "\u3400" <= before <= "\u9fff" or "\uf900" <= before <= "\ufaff"
    if text[at] <= "\u180f":
        return "\u1800" <= before <= "\u18af"
    if text[at] >= "\ufe0e":
        # As a picture or as text; one letter is a picture too.
        return before in "0123456789#*\u2139" or not (before.isascii() or before.isalpha())
    return text[at] <= "\ufe02" and _HAS_VARIANTS.match(before) is not None


# Ideographs, mathematical signs, punctuation of full width, Myanmar and Phags-pa: those for which
# Unicode has such variants (StandardizedVariants.txt).
_HAS_VARIANTS = re.compile(
    "[\u2200-\u22ff\u2a00-\u2aff\u3000-\u3002\u3400-\u9fff\uf900-\ufaff\uff01-\uff1f"
    "\u1000-\u109f\ua9e0-\uaa7f\ua840-\ua877\U00020000-\U0003ffff]"
)


def _is_selector(one: str) -> bool:
    return "\ufe00" <= one <= "\ufe0f" or "\U000e0100" <= one <= "\U000e01ef"


_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e007a]{3,6}\U000e007f")


def _tag(text: str, at: int) -> bool:
    """Part of a flag: of Scotland, say."""
    flag = _FLAG.search(text, max(0, at - 7), at + 8)
    return flag is not None and flag.start() < at < flag.end()


_ALLOWED: dict[str, Callable[[str, int], bool]] = {
    "control": _control,
    "unseen": _unseen,
    "selector": _selector,
    "tag": _tag,
}
