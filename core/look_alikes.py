"""Names as the eye takes them: two that fold to the same text pass for each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from core.homoglyphs import AS_LATIN

# Letters that pass for another in one typeface or another, and pairs that pass for one.
_LETTERS = str.maketrans({"0": "O", "1": "l", "I": "l"})
_PAIRS = (("rn", "m"), ("vv", "w"))
# Whoever reads quickly takes these for each other in any case.
_FREE_LETTERS = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "!": "l"})


def look_alikes(name: str) -> Iterable[str]:
    """The texts that a name of plain ASCII could be taken for."""
    look = _paired(name.translate(_LETTERS))
    return dict.fromkeys((name.casefold(), look.casefold()))


def skeleton(name: str) -> str:
    """The letters and digits of a name in free text, without case, accents and dress; a letter of
    another alphabet as the Latin one that it passes for."""
    plain = unicodedata.normalize("NFKD", name).translate(AS_LATIN).casefold()
    folded = "".join(map(_undressed, plain)).translate(_FREE_LETTERS)
    return _paired("".join(filter(str.isalnum, folded)))


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
