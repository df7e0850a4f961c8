"""Names as the eye takes them: two that fold to the same text pass for each other."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from core.homoglyphs import AS_LATIN

# Letters that pass for another in one typeface or another, and pairs that pass for one.
_LETTERS = str.maketrans({"0": "O", "1": "l", "I": "l"})
_PAIRS = (("rn", "m"), ("vv", "w"))
# Whoever reads quickly takes these for each other in any case.
_FREE_LETTERS = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "!": "l"})
# Letters of every alphabet that Unicode has as confusable with one of ours; AS_LATIN is for words
# that are marked, and has only what hardly anybody could mean.
_CONFUSABLES: dict[str, str] = json.loads(Path(__file__).with_name("confusables.json").read_text())[
    "letters"
]
_AS_LATIN = AS_LATIN | {ord(one): to for to, those in _CONFUSABLES.items() for one in those}
# Digits and signs that are read as the letter that they are written for.
_AS_LETTERS = str.maketrans("345789@$", "eastbgas")


def look_alikes(name: str) -> Iterable[str]:
    """The texts that a name of plain ASCII could be taken for."""
    look = _paired(name.translate(_LETTERS))
    return dict.fromkeys((name.casefold(), look.casefold()))


def skeleton(name: str) -> str:
    """The letters and digits of a name in free text, without case, accents and dress; a letter of
    another alphabet as the Latin one that it passes for."""
    plain = unicodedata.normalize("NFKD", name).translate(_AS_LATIN).casefold()
    # Once more: some small letters fold to large ones, as those of Cherokee.
    plain = plain.translate(_AS_LATIN).casefold()
    folded = "".join(map(_undressed, plain)).translate(_FREE_LETTERS)
    return _paired("".join(filter(str.isalnum, folded)))


def readings(name: str) -> set[str]:
    """The skeletons of a name as it is, and with digits read as letters: Cl4ude."""
    return {skeleton(name), skeleton(name.translate(_AS_LETTERS))}


def _paired(text: str) -> str:
    for pair, one in _PAIRS:
        text = text.replace(pair, one)
    return text


def _undressed(letter: str) -> str:
    """Small capitals and the dotless i, which normalization leaves, as the letters they are."""
    if letter.isascii():
        return letter
    called = unicodedata.name(letter, "")
    last = called.rpartition(" ")[2]
    is_dressed = "LATIN" in called and ("SMALL CAPITAL" in called or "DOTLESS" in called)
    return last.lower() if is_dressed and len(last) == 1 else letter
