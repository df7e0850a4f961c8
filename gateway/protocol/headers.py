"""Request headers, looked at as bytes: most requests never need more."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

Lines = Iterable[tuple[bytes, bytes]]

_SENTINEL = re.compile(rb"=\?base64\?(.*)\?=")
_PRINTABLE = re.compile(rb"[\x20-\x7e\t]*")


class Headers:
    """Names in lower case, as ASGI gives them. `repeated` names those that came more than once."""

    __slots__ = ("_values", "repeated")

    def __init__(self, lines: list[tuple[bytes, bytes]]) -> None:
        self._values = dict(lines)
        self.repeated: frozenset[bytes] = frozenset()
        if len(self._values) != len(lines):
            self._fold(lines)

    def _fold(self, lines: list[tuple[bytes, bytes]]) -> None:
        times = Counter(name for name, _ in lines)
        self.repeated = frozenset(name for name, n in times.items() if n > 1)
        for repeated in self.repeated:
            self._values[repeated] = b", ".join(v for name, v in lines if name == repeated)

    def get(self, name: bytes) -> bytes:
        """The value without the white space around it, which httptools leaves on."""
        return self._values.get(name, b"").strip(b" \t")

    def text(self, name: bytes) -> str | None:
        value = self._values.get(name)
        return None if value is None else value.strip(b" \t").decode("latin-1")

    def decoded(self, name: bytes) -> str | None:
        """A value that may stand in base64 between sentinels; None if absent or malformed."""
        value = self._values.get(name)
        return None if value is None else decode(value.strip(b" \t"))


def decode(value: bytes) -> str | None:
    """Source: MCP 2026-07-28, basic/transports/streamable-http, "Value Encoding"."""
    encoded = _SENTINEL.fullmatch(value)
    if encoded is None:
        return value.decode("ascii") if _PRINTABLE.fullmatch(value) else None
    try:
        plain = base64.b64decode(encoded[1], validate=True)
        # Two spellings of one value are one too many.
        return plain.decode() if base64.b64encode(plain) == encoded[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


@lru_cache(maxsize=256)
def accepts_both(accept: bytes) -> bool:
    """Whether JSON and event streams are both welcome, as every revision demands."""
    return accepts_events(accept) and bool(
        _ranges(accept) & {b"application/json", b"application/*", b"*/*"}
    )


@lru_cache(maxsize=256)
def accepts_events(accept: bytes) -> bool:
    return bool(_ranges(accept) & {b"text/event-stream", b"text/*", b"*/*"})


def _ranges(accept: bytes) -> set[bytes]:
    return {part.partition(b";")[0].strip().lower() for part in accept.split(b",")}


@lru_cache(maxsize=256)
def is_json(content_type: bytes) -> bool:
    kind, _, parameters = content_type.partition(b";")
    charset = parameters.replace(b" ", b"").lower()
    return kind.strip().lower() == b"application/json" and charset in (
        b"",
        b"charset=utf-8",
        b'charset="utf-8"',
    )
