"""How long a text a pattern may be checked on.

The engine is linear, and still its steps are texts times states: `a[ab]{500}c` takes five seconds
for a megabyte. So the more states, the shorter the text. Short texts are always checked: no more
states can be alive in them than they have characters.
"""

from __future__ import annotations

import re

# Characters times states; a step takes about ten nanoseconds.
STEPS = 5_000_000
ALWAYS = 4096
# Of patterns for names of properties, whose length nothing else bounds.
MOST_OF_NAMES = 64
_TOKEN = re.compile(
    r"(?P<escape>\\(?:[pPx]\{[^}]*\}|u[0-9a-fA-F]{4}|.))|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<open>\((?:\?(?:[:=!]|<[=!]|P?<\w+>|[a-zA-Z-]*:?))?)|(?P<close>\))"
    r"|(?P<count>\{(?P<least>\d+)(?:,(?P<most>\d*))?\})|(?P<any>.)",
    re.DOTALL,
)


def longest(pattern: str) -> int:
    """In characters."""
    return max(ALWAYS, STEPS // weight(pattern))


def weight(pattern: str) -> int:
    """About how many states it has: one for each character, as often as it is counted."""
    # Of each open group: what it weighs so far, and its last part, which a count multiplies.
    groups = [[0, 0]]
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            groups.append([0, 0])
        elif token["close"] and len(groups) > 1:
            total, last = groups.pop()
            _add(groups[-1], total + last)
        elif token["count"]:
            most = int(token["most"] or token["least"])
            groups[-1][1] = max(1, groups[-1][1]) * max(1, min(most, STEPS))
        else:
            _add(groups[-1], 1)
    return max(1, sum(map(sum, groups)))


def _add(group: list[int], part: int) -> None:
    group[0] += group[1]
    group[1] = part
