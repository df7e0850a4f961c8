"""Paths from leaves to roots, from few rows: leaves, and nodes at every eighth level."""

from __future__ import annotations

from audit.models import Leaf, Node
from audit.verify import Peaks, node_hash

# Nodes are kept where a proof would otherwise have to read more than this many hashes.
STRIDE = 8
BLOCK = 2**STRIDE


class Tree:
    """The first `size` leaves. Remembers what it read: for one export or one page."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._blocks: dict[tuple[int, int], list[bytes]] = {}

    def path(self, index: int) -> list[bytes]:
        """RFC 9162, 2.1.3.1."""
        first, last, path = 0, self.size, []
        while last - first > 1:
            middle = first + _half(last - first)
            if index < middle:
                path.append(self._range(middle, last))
                last = middle
            else:
                path.append(self._range(first, middle))
                first = middle
        return path[::-1]

    def peaks(self) -> Peaks:
        """What the tree grows on from: reads at most a block for each eighth level."""
        roots, first = [], 0
        for level in reversed(range(self.size.bit_length())):
            if self.size >> level & 1:
                roots.append(self._whole(level, first >> level))
                first += 1 << level
        return Peaks(self.size, roots)

    def _range(self, first: int, last: int) -> bytes:
        length = last - first
        if length & (length - 1) == 0:
            level = length.bit_length() - 1
            return self._whole(level, first >> level)
        middle = first + _half(length)
        return node_hash(self._range(first, middle), self._range(middle, last))

    def _whole(self, level: int, index: int) -> bytes:
        """The root of 2**level leaves, all of which are there."""
        below = level - level % STRIDE
        block, place = divmod(index << (level - below), BLOCK)
        hashes = self._block(below, block)[place : place + (1 << (level - below))]
        while len(hashes) > 1:
            hashes = [node_hash(*hashes[n : n + 2]) for n in range(0, len(hashes), 2)]
        return hashes[0]

    def _block(self, level: int, block: int) -> list[bytes]:
        key = (level, block)
        if key not in self._blocks:
            # One leaf after the other asks for the same; what is far behind is asked for no more.
            if len(self._blocks) > 64:
                self._blocks.clear()
            self._blocks[key] = _read(level, block * BLOCK)
        return self._blocks[key]


def _half(length: int) -> int:
    """The largest power of two below it."""
    return 1 << ((length - 1).bit_length() - 1)


def _read(level: int, first: int) -> list[bytes]:
    rows = Node.objects.filter(level=level) if level else Leaf.objects.all()
    found = rows.filter(index__gte=first, index__lt=first + BLOCK).order_by("index")
    return [bytes(one) for one in found.values_list("hash", flat=True)]
