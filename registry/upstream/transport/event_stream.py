"""Server-sent events, bytes in, messages out."""

import re

from registry.upstream.transport.thinning import thinned
from registry.upstream.values import ResultTooLarge, describe_size

_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventStream:
    """Parses one stream piece by piece; memory and work stay in proportion to `limit`.

    Source: HTML Living Standard, 9.2.6 "Interpreting an event stream".
    """

    def __init__(self, limit: int) -> None:
        self.last_id = ""
        self.retry_ms = 1000
        self._limit = limit
        self._taken = 0
        self._partial = bytearray()
        self._after_cr = False
        self._data: list[bytes] = []
        self._kind = b""
        self._id: str | None = None

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every message that this piece completes."""
        self._taken += len(chunk)
        if self._taken > self._limit:
            raise ResultTooLarge(describe_size(self._limit))
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        return self._take(_LINE_END.split(chunk))

    def thinned(self, messages: list[bytes]) -> list[bytes]:
        """Drops superfluous notifications, which do not count towards the limit."""
        kept = thinned(messages)
        self._taken -= sum(map(len, messages)) - sum(map(len, kept))
        return kept

    def begin_again(self) -> None:
        """A new connection continues after the last whole event."""
        self._partial.clear()
        self._after_cr = False
        self._forget()

    def _forget(self) -> None:
        self._data.clear()
        self._kind, self._id = b"", None

    def _take(self, lines: list[bytes]) -> list[bytes]:
        done = []
        last = lines.pop()
        if lines and self._partial:
            lines[0] = bytes(self._partial + lines[0])
            self._partial.clear()
        for line in lines:
            if line:
                self._field(line)
            elif (data := self._event()) is not None:
                done.append(data)
        self._partial += last
        return done

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._kind = value
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)

    def _event(self) -> bytes | None:
        data, kind = b"\n".join(self._data), self._kind
        if self._id is not None:
            self.last_id = self._id
        self._forget()
        # Others, and the empty one that only announces an id, carry no message.
        return data if data and kind in (b"", b"message") else None
