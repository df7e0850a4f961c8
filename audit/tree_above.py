"""The tree above the tiles: which root the record had at each size that somebody signed."""

from __future__ import annotations

from audit.clock import LATE_US, LONG_AGO, put_in
from audit.parts import FINDINGS_MAX, PartFindings
from audit.tree import Tree
from audit.verify import TILE, Check, Peaks, peaks, root_of


class TreeAbove:
    """Made of the tiles of one part after the other, from tile `first` on."""

    def __init__(self, check: Check, first: int, size: int) -> None:
        self.check, self.size = check, size
        before = Tree(first * TILE).right_edge().levels[1:]
        self.tiles = Peaks(first, [peak for hashes in reversed(before) for peak in peaks(hashes)])
        self.check.roots[first * TILE] = self.tiles.root()
        self.newest = LONG_AGO

    def add(self, part: PartFindings) -> None:
        found = self.check.found
        found.entries += part.entries
        found.wrong += part.wrong[: max(0, FINDINGS_MAX - len(found.wrong))]
        self._compare_times(part)
        for index, entry in part.declared:
            self.check.restore(index, entry)
        if part.first == self.tiles.size:
            self._grow(part)

    def _grow(self, part: PartFindings) -> None:
        beginnings: dict[int, list[int]] = {}
        for size in part.beginnings:
            beginnings.setdefault(size // TILE, []).append(size)
        for tile in range(part.first, part.first + len(part.roots) + 1):
            for size in beginnings.get(tile, []):
                self.check.roots[size] = root_of([*self.tiles.peaks, part.beginnings[size]])
            if tile < part.first + len(part.roots):
                for _ in self.tiles.append(part.roots[tile - part.first]):
                    pass
                self.check.roots[self.tiles.size * TILE] = self.tiles.root()

    def _compare_times(self, part: PartFindings) -> None:
        if part.oldest and part.oldest[0] + LATE_US < self.newest:
            at, pk, index = part.oldest
            self.check.found.say(put_in(pk, at, index, self.newest))
        self.newest = part.newest if part.stepped else max(self.newest, part.newest)

    def finish(self) -> None:
        self.check.tree.size = self.size
        for size in self.check.wanted:
            # Beyond what is missing nothing can be computed.
            self.check.roots.setdefault(size, b"")
