"""Progress that comes faster than anybody reads it: only the last of it is read and passed on."""

import re
from collections import Counter
from typing import TypeVar

# So many messages that came at once are passed on as they are.
FEW = 64
# Of more, so many reports of each call.
KEPT = 8
# As SDKs write it. What is written otherwise is passed on.
_PROGRESS = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"\s*:\s*"notifications/progress"'
)
_TOKEN = re.compile(rb'"progressToken"\s*:\s*(\d{1,15}|"[^"\\]{1,100}")')

T = TypeVar("T")


def thinned(messages: list[T]) -> list[T]:
    """Messages that came at once, without all but the last reports of each call. What is no bytes
    stays."""
    kept: list[T] = []
    reports: Counter[bytes] = Counter()
    for message in reversed(messages):
        if isinstance(message, bytes) and _PROGRESS.match(message):
            token = _TOKEN.search(message)
            call = token[1] if token else b""
            reports[call] += 1
            if reports[call] > KEPT:
                continue
        kept.append(message)
    kept.reverse()
    return kept
