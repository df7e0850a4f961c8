"""The tree, from few rows: whole tiles of 256 hashes, and at the right edge what batches hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db.models import Max

from audit.models import Batch, Tile
from audit.verify import HASH, TILE, node_hash, peaks, root_of

# A tile stands for so many levels of the tree.
HEIGHT = 8


@dataclass(frozen=True, slots=True)
class NewTile:
    level: int
    index: int
    hashes: bytes
    root: bytes


@dataclass(slots=True)
class RightEdge:
    """A tree that grows: of each level of tiles, the hashes that are in no whole tile."""

    size: int = 0
    levels: list[list[bytes]] = field(default_factory=list)

    def copy(self) -> RightEdge:
        return RightEdge(self.size, [list(hashes) for hashes in self.levels])

    def append(self, leaf: bytes) -> Iterator[NewTile]:
        """Each tile that this leaf makes whole."""
        self.size += 1
        level, made = 0, leaf
        while True:
            hashes = self._level(level)
            hashes.append(made)
            if len(hashes) < TILE:
                return
            (made,) = peaks(hashes)
            whole = b"".join(hashes)
            hashes.clear()
            level += 1
            yield NewTile(level - 1, (self.size >> HEIGHT * level) - 1, whole, made)

    @property
    def is_whole(self) -> bool:
        """Nothing of it was missing where it was read."""
        sizes = [len(hashes) for hashes in self.levels]
        return self.size == sum(n << HEIGHT * level for level, n in enumerate(sizes))

    def root(self) -> bytes:
        return root_of([peak for hashes in reversed(self.levels) for peak in peaks(hashes)])

    def _level(self, level: int) -> list[bytes]:
        while len(self.levels) <= level:
            self.levels.append([])
        return self.levels[level]


class Tree:
    """The first `size` leaves. Remembers what it read: for one export or one page."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._tiles: dict[tuple[int, int], list[bytes]] = {}

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

    def leaf(self, index: int) -> bytes:
        """Empty where it is not there any more."""
        tile, place = divmod(index, TILE)
        return b"".join(self._tile(0, tile)[place : place + 1])

    def right_edge(self) -> RightEdge:
        """The right edge, from which the tree grows: reads one tile of each level."""
        levels: list[list[bytes]] = []
        above = self.size
        while above:
            above, hashes = divmod(above, TILE)
            levels.append(self._tile(len(levels), above)[:hashes])
        return RightEdge(self.size, levels)

    def _range(self, first: int, last: int) -> bytes:
        length = last - first
        if length & (length - 1) == 0:
            level = length.bit_length() - 1
            return self._whole(level, first >> level)
        middle = first + _half(length)
        return node_hash(self._range(first, middle), self._range(middle, last))

    def _whole(self, level: int, index: int) -> bytes:
        """The root of 2**level leaves, all of which are there."""
        below = level % HEIGHT
        tile, place = divmod(index << below, TILE)
        hashes = self._tile(level // HEIGHT, tile)[place : place + (1 << below)]
        return root_of(peaks(hashes))

    def _tile(self, level: int, index: int) -> list[bytes]:
        key = (level, index)
        if key not in self._tiles:
            # One leaf after the other asks for the same; what is far behind is asked for no more.
            if len(self._tiles) > 64:
                self._tiles.clear()
            self._tiles[key] = hashes_of(level, index)
        return self._tiles[key]


def hashes_of(level: int, index: int) -> list[bytes]:
    """Hashes of a tile, which may be partial."""
    tiles = Tile.objects.filter(level=level, index=index).values_list("hashes", flat=True)
    if whole := tiles.first():
        return split(bytes(whole))
    return _roots(level - 1, index * TILE) if level else _edge(index * TILE)


def split(hashes: bytes) -> list[bytes]:
    return [hashes[n : n + HASH] for n in range(0, len(hashes), HASH)]


def _roots(level: int, first: int) -> list[bytes]:
    found = Tile.objects.filter(level=level, index__gte=first, index__lt=first + TILE)
    return [bytes(root) for root in found.order_by("index").values_list("root", flat=True)]


def _edge(first: int) -> list[bytes]:
    """Hashes of the last, partial tile, which begins with leaf `first`; empty without a batch."""
    within = Batch.objects.filter(first_index__lte=first).aggregate(first=Max("first_index"))
    found = Batch.objects.filter(first_index__gte=within["first"] or 0).order_by("first_index")
    hashes: list[bytes] = []
    for batch in found[: TILE + 1]:
        held = split(bytes(batch.edge))
        place = batch.first_index + batch.leaves - len(held) - first
        if 0 <= place < TILE:
            hashes += [b""] * (place - len(hashes))
            hashes[place:] = held
    return hashes


def _half(length: int) -> int:
    """The largest power of two below it."""
    return 1 << ((length - 1).bit_length() - 1)
