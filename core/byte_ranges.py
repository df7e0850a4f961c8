"""The bytes of a file that a request asks for. Source: RFC 9110, 13.1.5 and 14."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.http import HttpRequest

_RANGE = re.compile(r"bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})", re.ASCII | re.IGNORECASE)


class RangeNotSatisfiable(Exception):
    """Nothing of the file is in the range."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """From `first` up to `last`, both included; all of an empty file is 0 to -1."""

    first: int
    last: int
    size: int

    @property
    def is_all(self) -> bool:
        return self.length == self.size

    @property
    def length(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"bytes {self.first}-{self.last}/{self.size}"


def requested_range(request: HttpRequest, size: int, etag: str) -> ByteRange:
    """One range. Several at once, other units and a file that is another by now get all of it.
    Raises RangeNotSatisfiable."""
    everything = ByteRange(0, size - 1, size)
    # The weak comparison, and dates, never fit: nothing here has a date.
    if request.headers.get("If-Range", etag) != etag:
        return everything
    found = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if found is None or found.groups() == ("", ""):
        return everything
    first, last = found.groups()
    if not first:
        first, last = str(max(0, size - int(last))), "" if int(last) else "-1"
    elif last and int(last) < int(first):
        return everything
    wanted = ByteRange(int(first), min(int(last or size - 1), size - 1), size)
    if wanted.length <= 0:
        raise RangeNotSatisfiable
    return wanted
