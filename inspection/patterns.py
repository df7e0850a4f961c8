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
_NAME = regex.compile(r"[a-z0-9][a-z0-9 _-]{0,39}")


class BadPattern(CountersignError):
    """It cannot be used; says which line, and why."""


class PatternsTimedOut(Exception):
    """The patterns took all the time that they have."""


class MaskPattern(NamedTuple):
    name: str
    compiled: regex.Pattern[str]


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
    name, colon, written = (part.strip() for part in line.partition(":"))
    if not (colon and written and _NAME.fullmatch(name)):
        said = _("“%s” is not of the form: name: pattern. A name has lower-case letters.")
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
    return MaskPattern(name, compiled)


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
        began = time.thread_time()
        try:
            matches = one.compiled.finditer(text, concurrent=True, timeout=self._timeout_s())
            return [
                Masked(match.start(), match.end(), f"custom.{one.name}")
                for match in matches
                if match.end() > match.start()
            ]
        except TimeoutError as error:
            # On a busy machine less of a processor's time went by than of the clock's.
            self._left_s = 0
            raise PatternsTimedOut(one.name) from error
        finally:
            self._left_s -= time.thread_time() - began

    def _timeout_s(self) -> float:
        if self._left_s <= 0:
            raise TimeoutError
        return min(self._left_s, self._each_s)
