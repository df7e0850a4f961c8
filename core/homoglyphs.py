"""Characters that pass for others: a Cyrillic а in an address, a slash that is none.

A letter is only suspect where it pretends: in a word with Latin letters, or in a word made of
nothing but such letters amid Latin text. Text in its own script is left alone.
"""

import re
import unicodedata
from collections.abc import Iterator

# Letters of other scripts that are drawn like Latin ones, and the Latin ones.
_LETTERS = {
    "Cyrillic": ("аеһіјӏорсԛѕѵԝхуАВЕЅІЈКМНОРСТХҮԚԜ", "aehijlopcqsvwxyABESIJKMHOPCTXYQW"),
    "Greek": ("αικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aikvoptuxABEZHIKMNOPTYX"),
    "Armenian": ("օսհոցզՕՍԼ", "ouhngqOUL"),
    "Cherokee": ("ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ", "ABCDEHJKLMPRSTVWZ"),
    "Latin": ("ɑɡıƖʟᴏᴜᴠᴡᴢꜱ", "agiIlouvwzs"),
}
# For str.translate: such a letter as the Latin one that it passes for.
AS_LATIN = str.maketrans({k: v for pair in _LETTERS.values() for k, v in zip(*pair, strict=True)})
# Drawn like the dot, slash, colon or sign that separates the parts of an address.
_MARKS = "․‧ꓸ。．｡⁄∕⧸╱／։׃∶：﹕ꞏ＠﹫？﹖＃"
_SCRIPT = {letter: script for script, (letters, _) in _LETTERS.items() for letter in letters}
# Latin letters and digits in other clothes: mathematical, full-width, Roman numerals, circled.
_DRESSED = "\U0001d400-\U0001d7ff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u2160-\u217f\u2460-\u24ff"
_SUSPECT = re.compile(f"[{re.escape(''.join(_SCRIPT))}{re.escape(_MARKS)}{_DRESSED}]")
_PIECE = re.compile(r"\S+")
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[A-Za-z]")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Beyond this nobody reads letter by letter, and a page of marks would help nobody.
LIMIT = 64 * 1024


def suspects(text: str) -> list[int]:
    """Positions of homoglyphs in `text`, in order."""
    if text.isascii() or not _SUSPECT.search(text):
        return []
    return sorted(_positions(text[:LIMIT]))


def _positions(text: str) -> Iterator[int]:
    own = _scripts_of_their_own(text)
    wide = _WIDE.search(text) is not None
    amid_latin = _LATIN.search(text) is not None
    for piece in _PIECE.finditer(text):
        if piece.group().isascii() or not _SUSPECT.search(piece.group()):
            continue
        for word in _WORD.finditer(piece.group()):
            start = piece.start() + word.start()
            yield from (
                start + at for at in _in_word(word.group(), own, wide=wide, amid_latin=amid_latin)
            )
        yield from (piece.start() + at for at in _separators(piece.group()))


def _in_word(word: str, own: set[str], *, wide: bool, amid_latin: bool) -> Iterator[int]:
    latin = _LATIN.search(word) is not None
    whole = all(letter in _SCRIPT for letter in word) and len(word) > 1
    for at, letter in enumerate(word):
        script = _SCRIPT.get(letter)
        if script:
            if latin or (whole and script not in own and amid_latin):
                yield at
        elif _is_dressed(letter) and (latin or not wide):
            yield at


def _separators(piece: str) -> Iterator[int]:
    """Between two plain letters or digits such a mark is no punctuation of another language."""
    for at, mark in enumerate(piece):
        beside = piece[max(0, at - 1) : at] + piece[at + 1 : at + 2]
        if mark in _MARKS and len(beside) == 2 and beside.isascii() and beside.isalnum():
            yield at


def _scripts_of_their_own(text: str) -> set[str]:
    """Scripts that the text is really written in: it has letters that pass for nothing."""
    found = set()
    for letter in set(text):
        if letter.isascii() or letter in _SCRIPT or not letter.isalpha():
            continue
        found.add(unicodedata.name(letter, "").split(" ")[0].title())
    return found


def _is_dressed(letter: str) -> bool:
    return not letter.isascii() and unicodedata.normalize("NFKC", letter).isascii()
