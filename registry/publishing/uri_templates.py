"""Does a URI come of a URI template? Liberally: who reads it is still to be judged by rules.

Source: RFC 6570, of which servers use levels 1 to 4.
"""

from __future__ import annotations

import re

_PARTS = re.compile(r"\{([^{}]*)\}")
# Their variables may be missing, and may hold anything.
_OPERATORS = "+#./;?&"


class Template:
    """`{x}` stands for one part of a path, `{+x}` and its like for anything, even nothing."""

    __slots__ = ("_steps",)

    def __init__(self, text: str) -> None:
        # Literals and, between them, expressions.
        self._steps = _PARTS.split(text)

    def matches(self, uri: str) -> bool:
        """In steps times characters, whatever the template."""
        at = {0}
        for number, step in enumerate(self._steps):
            at = _past(uri, at, step) if number % 2 else _past_literal(uri, at, step)
            if not at:
                return False
        return len(uri) in at


def _past_literal(uri: str, at: set[int], literal: str) -> set[int]:
    return {start + len(literal) for start in at if uri.startswith(literal, start)}


def _past(uri: str, at: set[int], expression: str) -> set[int]:
    if expression[:1] in _OPERATORS and expression:
        return set(range(min(at), len(uri) + 1))
    found: set[int] = set()
    for start in sorted(at):
        # What an earlier start has reached, a later one need not walk again.
        if start + 1 not in found:
            slash = uri.find("/", start)
            found.update(range(start + 1, (len(uri) if slash < 0 else slash) + 1))
    return found
