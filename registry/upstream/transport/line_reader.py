"""Messages framed by line ends, however long or short the pieces that they come in."""

from dataclasses import dataclass

from core.kept_english import gettext as _
from registry.upstream.values import ResultTooLarge

_KEPT = 256
# A line this many times over the limit will not end.
_ENDLESS = 8


@dataclass(frozen=True, slots=True)
class Overlong:
    """Both ends of a line that was too long to be kept; its id stands in one of them."""

    ends: bytes
    size: int


class LineReader:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept = bytearray()
        self._size = 0
        self._head = b""

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """The lines that this piece completes, without their ends and without empty ones."""
        if not self._size and chunk.find(b"\n") == len(chunk) - 1 and 1 < len(chunk) <= self.limit:
            # One whole line, as most come.
            return [chunk[:-1]]
        *complete, rest = chunk.split(b"\n")
        done = []
        for piece in complete:
            self._keep(piece)
            if self._size:
                done.append(self._line())
        self._keep(rest)
        return done

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        self._kept += piece
        if self._size <= self.limit:
            return
        if self._size > _ENDLESS * self.limit:
            raise ResultTooLarge(_("The server wrote a line of more than %d bytes.") % self._size)
        self._head = self._head or bytes(self._kept[:_KEPT])
        del self._kept[:-_KEPT]

    def _line(self) -> bytes | Overlong:
        line: bytes | Overlong = bytes(self._kept)
        if self._head:
            line = Overlong(self._head + bytes(self._kept), self._size)
        self._kept.clear()
        self._size, self._head = 0, b""
        return line
