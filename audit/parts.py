"""A part of the record, some tiles long, against what was sealed: each can be checked in a process
of its own, and takes the memory of some tiles at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from audit.bodies import EntryReader, StoredEntry, body, leaf
from audit.clock import LONG_AGO, TimeOrder, put_in
from audit.leaves import in_order
from audit.models import Tile
from audit.tree import hashes_of, split
from audit.verify import HASH, RESTORED, TILE, Peaks, peaks, root_of

# Tiles whose entries are read at once.
CHUNK = 8
# So many sentences of one part; further ones say nothing new.
FINDINGS_MAX = 50
# Where a leaf's hash is gone, and its entry too.
UNKNOWN = bytes(HASH)


@dataclass(frozen=True, slots=True)
class Part:
    """Which tiles, of a record of so many leaves, and what has to be known of all of it."""

    first: int
    last: int
    size: int
    # At which sizes within, no whole tiles, somebody signed a root.
    wanted: Collection[int]
    steps: Mapping[int, int]


@dataclass(slots=True)
class PartFindings:
    """The findings on one part, and its hashes, enough to build the tree above it."""

    first: int
    entries: int = 0
    # Of each tile, and of the beginning of a tile up to each size that was wanted.
    roots: list[bytes] = field(default_factory=list)
    beginnings: dict[int, bytes] = field(default_factory=dict)
    declared: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    newest: int = LONG_AGO
    oldest: tuple[int, int, int] | None = None
    stepped: bool = False

    def say(self, sentence: str) -> None:
        if len(self.wrong) < FINDINGS_MAX:
            self.wrong.append(sentence)


def check_part(part: Part) -> PartFindings:
    found = PartFindings(part.first)
    order = TimeOrder(part.steps, part.first * TILE)
    reader = EntryReader()
    for first in range(part.first, part.last, CHUNK):
        _check_chunk(first, min(first + CHUNK, part.last), part, reader, order, found)
    found.newest, found.oldest, found.stepped = order.newest, order.oldest, order.stepped
    return found


def _check_chunk(
    first: int, last: int, part: Part, reader: EntryReader, order: TimeOrder, found: PartFindings
) -> None:
    ids = dict(in_order(first * TILE, min(last * TILE, part.size)))
    rows = reader.rows(ids.values())
    whole = Tile.objects.filter(level=0, index__gte=first, index__lt=last)
    tiles = {tile.index: tile for tile in whole}
    for tile in range(first, last):
        kept = _kept_leaves(tile, tiles.get(tile), part.size, found)
        hashes = _compared(tile * TILE, kept, ids, rows, order, found)
        _build(tile, hashes, part, found)


def _kept_leaves(index: int, tile: Tile | None, size: int, found: PartFindings) -> list[bytes]:
    """The hashes that were sealed, in the tile or, as long as it is not whole, in batches."""
    expected = min(TILE, size - index * TILE)
    if expected < TILE:
        hashes = hashes_of(0, index)
    else:
        hashes = split(bytes(tile.hashes)) if tile else []
        if not tile or [bytes(tile.root)] != peaks(hashes):
            found.say(f"Tile 0/{index} is gone, or not what was written: leaves {index * TILE} on.")
    return [*hashes, *[b""] * expected][:expected]


def _compared(
    first: int,
    kept: list[bytes],
    ids: Mapping[int, int],
    rows: Mapping[int, StoredEntry],
    order: TimeOrder,
    found: PartFindings,
) -> list[bytes]:
    """The tile's hashes; where one is gone, that of the entry."""
    hashes = []
    for index, hashed in enumerate(kept, start=first):
        pk = ids.get(index)
        row = rows.get(pk) if pk is not None else None
        made = leaf(row) if row else b""
        if pk is not None:
            found.entries += 1
            _compare(index, pk, row, made == hashed, order, found)
        hashes.append(hashed if len(hashed) == HASH else made or UNKNOWN)
    return hashes


def _compare(
    index: int,
    pk: int,
    row: StoredEntry | None,
    is_same: bool,
    order: TimeOrder,
    found: PartFindings,
) -> None:
    if row is None:
        found.say(f"Entry {pk} is gone: its leaf {index} is still there.")
        return
    if not is_same:
        found.say(f"Entry {pk} was changed: it is not what leaf {index} says.")
    if row.names.absent:
        for number in row.names.absent.intersection(row.numbers()):
            found.say(f"Entry {pk} bears name {number}, which is not there.")
    newest = order.newest
    if order.is_late(index, pk, row.written) and is_same:
        found.say(put_in(pk, row.written, index, newest))
    if row.did == RESTORED:
        found.declared.append((index, body(row)))


def _build(tile: int, hashes: list[bytes], part: Part, found: PartFindings) -> None:
    end = tile * TILE + len(hashes)
    sizes = {size for size in part.wanted if tile * TILE < size <= end}
    if len(hashes) == TILE:
        found.roots += peaks(hashes)
        sizes.discard(end)
    if not sizes:
        return
    tree = Peaks()
    for size, hashed in enumerate(hashes, start=tile * TILE + 1):
        for _ in tree.append(hashed):
            pass
        if size in sizes:
            found.beginnings[size] = root_of(tree.peaks)
