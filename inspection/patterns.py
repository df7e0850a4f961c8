"""Patterns of an operator's own for what is to be masked, with a limit on the time that they take.

One a line, `name: pattern`. However a pattern and a text were written, all patterns together take
at most `LIMIT_S` for one result; then the result is not passed on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import regex

from core.english import gettext as _
from core.errors import CountersignError
from inspection.secrets import Masked

LIMIT_S = 0.2
MOST, LONGEST = 20, 500
# Where other threads took the time: how often a pattern begins anew, and with how many times as
# much. A try that took nearly all that it may is the last.
TRIES, MOST_TIMES, NEARLY, TICK_S = 5, 8.0, 0.9, 1e-6
# Letters of any script; of those with capitals, small ones.
_NAME = regex.compile(r"[\p{Ll}\p{Lo}0-9][\p{Ll}\p{Lo}0-9 _-]{0,39}")
_COLON = regex.compile("[:：]")


class BadPattern(CountersignError):
    """It cannot be used; says which line, and why."""


class PatternsTimedOut(Exception):
    """The patterns took all the time that they have."""


class MaskPattern(NamedTuple):
    """`literal`: stands in all that it fits, in lower case; "" where none is known."""

    name: str
    compiled: regex.Pattern[str]
    literal: str = ""


def check(text: str) -> None:
    """Raises BadPattern for patterns that nobody may choose."""
    if len(parsed(text)) > MOST:
        raise BadPattern(_("At most %d patterns.") % MOST)


@lru_cache(maxsize=1000)
def parsed(text: str) -> tuple[MaskPattern, ...]:
    """The patterns of a text with one a line: more than one may choose, where several choices
    apply together. Raises BadPattern."""
    return tuple(_pattern(line.strip()) for line in text.splitlines() if line.strip())


def _pattern(line: str) -> MaskPattern:
    name, *rest = (part.strip() for part in _COLON.split(line, maxsplit=1))
    written = "".join(rest)
    if not (written and _NAME.fullmatch(name)):
        said = _("“%s” is not of the form: name: pattern. A name has no capital letters.")
        raise BadPattern(said % line[:80])
    if len(written) > LONGEST:
        raise BadPattern(
            _("The pattern “%(name)s” is longer than %(most)d characters.")
            % {"name": name, "most": LONGEST}
        )
    try:
        compiled = regex.compile(written, regex.VERSION1)
        is_empty = compiled.search("", timeout=LIMIT_S) is not None
    except (regex.error, TimeoutError, RecursionError, OverflowError) as error:
        said = _("The pattern “%(name)s” cannot be used: %(why)s.")
        raise BadPattern(said % {"name": name, "why": str(error)[:200]}) from error
    if is_empty:
        raise BadPattern(_("The pattern “%s” fits where there is nothing.") % name)
    return MaskPattern(name, compiled, _literal_of(written))


# A piece of a pattern: a set, an escape, the beginning of a group, a count, any character.
_PIECE = regex.compile(r"\[(?:[^\[\]\\]|\\.)+\]|\\.|\(\?#|\{[^{}]*\}|.", regex.DOTALL)
# Escapes that say what stands there by one letter.
_CLASSES = frozenset("bBdDsSwWAZntrfv")
_VERBOSE = regex.compile(r"\(\?[A-Za-z0-9\-]*x[A-Za-z0-9\-]*[:)]")
# JSON writes these otherwise, in a text or in a text of a text.
_NOT_AS_THEY_ARE = frozenset('"\\/')


def _literal_of(written: str) -> str:
    """The longest run of plain characters outside groups that all it fits must have."""
    if not written.isascii() or _VERBOSE.search(written):
        return ""
    runs, depth = [""], 0
    for piece in _PIECE.findall(written):
        if _is_unclear(piece) or (piece == "|" and not depth):
            return ""
        depth += (piece == "(") - (piece == ")")
        if piece[0] in "?*{":
            runs[-1] = runs[-1][:-1]
        if depth or not _is_plain(piece):
            runs.append("")
        else:
            runs[-1] += piece[-1].lower()
    return max(runs, key=len)


def _is_unclear(piece: str) -> bool:
    is_escape = piece[0] == "\\" and piece[1:].isalnum() and piece[1:] not in _CLASSES
    return is_escape or piece in ("(?#", "[", "]", "{", "}")


def _is_plain(piece: str) -> bool:
    """Whether it stands for one character, which JSON writes as it is."""
    if piece[-1] in _NOT_AS_THEY_ARE or not piece[-1].isprintable():
        return False
    if len(piece) == 1:
        return piece not in ".^$*+?()"
    return len(piece) == 2 and piece[0] == "\\" and not piece[1].isalnum()


@lru_cache(maxsize=1000)
def literals(text: str) -> tuple[str, ...] | None:
    """One text a pattern, in lower case, that is in each ASCII text which the pattern fits; None
    where that is not known of one."""
    found = tuple(one.literal for one in parsed(text))
    return found if all(found) else None


class TimedPatterns:
    """The patterns for the texts of one result, with the time of a processor that is left to them:
    `total_s` for all texts and `each_s` for each. Another clock would count the time in which a
    busy machine does something else."""

    def __init__(self, text: str, *, total_s: float = LIMIT_S, each_s: float = LIMIT_S) -> None:
        self._patterns = parsed(text) if text else ()
        self._left_s, self._each_s = total_s, each_s

    def find(self, text: str) -> Iterator[Masked]:
        """Raises PatternsTimedOut."""
        for one in self._patterns:
            yield from self._matches(one, text)

    def _matches(self, one: MaskPattern, text: str) -> list[Masked]:
        most_s = min(self._left_s, self._each_s)
        timeout_s = most_s
        for _number in range(TRIES if most_s > 0 else 0):
            began = time.thread_time()
            try:
                matches = one.compiled.finditer(text, concurrent=True, timeout=timeout_s)
                found = [
                    Masked(match.start(), match.end(), f"custom.{one.name}")
                    for match in matches
                    if match.end() > match.start()
                ]
            except TimeoutError:
                # `regex` counts the time of all threads of this process, and this one had less.
                took_s = time.thread_time() - began
                if took_s >= NEARLY * most_s:
                    break
                timeout_s *= min(MOST_TIMES, most_s / max(took_s, TICK_S)) / NEARLY
            else:
                self._left_s -= time.thread_time() - began
                return found
        self._left_s = 0
        raise PatternsTimedOut(one.name)
