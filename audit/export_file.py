"""The file of an export that was prepared, read from any byte on.

Its parts say which entries their bytes are made of, and their digests. Any console makes the bytes
again, and hands out no part that is not what was prepared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from audit.exporting import Chunk, ExportContent
from audit.finding import Containing
from audit.models import Export, ExportPart
from audit.names import changed

# A part is closed once it has so many bytes, or so many thousand entries were looked at for it.
PART_BYTES, PART_CHUNKS = 1024 * 1024, 10


class ContentChanged(Exception):
    """A part is not what was prepared: something in it was forgotten, erased or archived since."""


class PreparedPart(NamedTuple):
    """Made of entries with ids above the one, up to the other; `changed` of them have a name that
    was changed."""

    above: int
    last_id: int
    rows: int
    changed: int
    content: bytes


class PreparedFile:
    def __init__(self, export: Export, has: Containing) -> None:
        self.export = export
        self.content = ExportContent(export, has)

    def prepare(self, above: int | None) -> Iterator[PreparedPart]:
        """The parts after the one that ended with entry `above`; None for all, at least one."""
        chunks = self.content.chunks(above=-1 if above is None else above)
        head = self.content.head() if above is None else ""
        is_first, above = above is None, -1 if above is None else above
        while some := list(_some(chunks, len(head))):
            yield _part(above, head, some)
            is_first, above, head = False, some[-1].last_id, ""
        if is_first:
            yield PreparedPart(above, above, 0, 0, head.encode())

    def read(self, first: int, last: int) -> Iterator[bytes]:
        """Raises ContentChanged, also where the export ended meanwhile."""
        number = self._number_at(first)
        while first <= last:
            part = self.export.parts.filter(number=number).first()
            if part is None:
                raise ContentChanged
            content = self._checked(part)
            if piece := content[first - part.offset : last - part.offset + 1]:
                yield piece
            first, number = first + len(piece), number + 1

    def _number_at(self, place: int) -> int:
        before = self.export.parts.filter(offset__lte=place, size__gt=0).order_by("-number")
        return before.values_list("number", flat=True).first() or 0

    def _checked(self, part: ExportPart) -> bytes:
        text = self.content.head() if part.number == 0 else ""
        text += "".join(
            chunk.text for chunk in self.content.chunks(above=part.above, last=part.last_id)
        )
        content = text.encode()
        if hashlib.sha256(content).digest() != bytes(part.digest):
            raise ContentChanged
        return content


def _some(chunks: Iterator[Chunk], length: int) -> Iterator[Chunk]:
    """Chunks for one part."""
    for chunk in islice(chunks, PART_CHUNKS):
        yield chunk
        length += len(chunk.text)
        if length >= PART_BYTES:
            return


def _part(above: int, head: str, chunks: list[Chunk]) -> PreparedPart:
    return PreparedPart(
        above,
        chunks[-1].last_id,
        sum(chunk.rows for chunk in chunks),
        sum(len(changed(chunk.ids)) for chunk in chunks),
        (head + "".join(chunk.text for chunk in chunks)).encode(),
    )
