"""The record in the database against what was signed: whoever changed a row is found out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from django.db import connection
from django.db.models import Count

from audit.bodies import StoredName, moment
from audit.clock import LATE, LONG_AGO, STEP, clock_steps, put_in
from audit.leaves import SEALED, sealed_size
from audit.models import Checkpoint, Name, Tile
from audit.parts import MOST, Part, PartFindings, check_part
from audit.signing import keys
from audit.tree import HEIGHT, split
from audit.verify import TILE, Check, Findings, Peaks, peaks, root_of

# Tiles of one part: 16,384 leaves.
PART = 64

# What nobody sealed: by the database's own clock and the sealer's place, not by any row's word.
OVERDUE = f"""
    SELECT e.id, e.at FROM audit_entryrow e CROSS JOIN {SEALED}
    WHERE NOT sealed.ids @> e.id
      AND e.at NOT BETWEEN clock_timestamp() - make_interval(secs => %s)
                       AND clock_timestamp() + make_interval(secs => %s)
    ORDER BY e.id LIMIT %s
"""
UNSEALED = f"SELECT count(*) FROM audit_entryrow e CROSS JOIN {SEALED} WHERE NOT sealed.ids @> e.id"
# Each batch begins where the one before it ends, and has an id for each of its leaves.
UNLIKELY = """
    SELECT first_index, expected FROM (
        SELECT b.first_index, b.leaves,
            lag(b.first_index + b.leaves, 1, 0::bigint) OVER (ORDER BY b.first_index) AS expected,
            (SELECT sum(upper(r) - lower(r)) FROM unnest(b.ids) r) AS ids
        FROM audit_batch b
    ) batch WHERE first_index <> expected OR leaves <> ids ORDER BY first_index LIMIT %s
"""
# Which parts of the tree any batch speaks of.
PARTS = """
    SELECT DISTINCT n FROM audit_batch b
    CROSS JOIN generate_series(b.first_index / %s, (b.first_index + b.leaves - 1) / %s) n
    ORDER BY n
"""


def check_live(anchors: Sequence[str] = ()) -> Findings:
    """Every entry, leaf and checkpoint; some seconds for a hundred thousand."""
    check = Check(keys(), anchors)
    for note in Checkpoint.objects.order_by("id").values_list("note", flat=True).iterator():
        check.checkpoint(note)
    check.expect()
    steps, notes = clock_steps(read for what, read in check.signed if what == "a checkpoint")
    check.found.notes += notes
    for sentence in _unlikely_batches():
        check.found.say(sentence)
    size = sealed_size()
    parts = _parts(size, check.wanted, steps)
    tree = _TreeAbove(check, size)
    for found in map(check_part, parts):
        tree.add(found)
    tree.finish()
    check.compare()
    if check.found.size and not check.signed:
        check.found.say("There are leaves, and no checkpoint that a known key signed.")
    for sentence in [*_wrong_tiles(size), *_overdue(), *_changed_names()]:
        check.found.say(sentence)
    return check.found


class _TreeAbove:
    """Made of the tiles of one part after the other: which root the tree had at each size."""

    def __init__(self, check: Check, size: int) -> None:
        self.check, self.size = check, size
        self.tiles = Peaks()
        self.newest = LONG_AGO

    def add(self, part: PartFindings) -> None:
        found = self.check.found
        found.entries += part.entries
        found.wrong += part.wrong[: max(0, MOST - len(found.wrong))]
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
        if part.oldest and part.oldest[0] + LATE < self.newest:
            at, pk, index = part.oldest
            self.check.found.say(put_in(pk, at, index, self.newest))
        self.newest = part.newest if part.stepped else max(self.newest, part.newest)

    def finish(self) -> None:
        self.check.tree.size = self.size
        for size in self.check.wanted:
            # Beyond what is missing nothing can be computed.
            self.check.roots.setdefault(size, b"")


def _parts(size: int, wanted: Iterable[int], steps: Mapping[int, int]) -> Iterator[Part]:
    sizes: dict[int, list[int]] = {}
    for one in wanted:
        sizes.setdefault(max(0, one - 1) // (PART * TILE), []).append(one)
    last = -(-size // TILE)
    with connection.cursor() as cursor:
        cursor.execute(PARTS, [PART * TILE] * 2)
        numbers = [int(n) for (n,) in cursor.fetchall()]
    for n in numbers:
        end = min(last, (n + 1) * PART)
        yield Part(n * PART, end, size, frozenset(sizes.get(n, [])), steps)


def _unlikely_batches() -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute(UNLIKELY, [MOST])
        for first, expected in cursor.fetchall():
            if first > expected:
                yield f"Leaves {expected} to {first - 1} are missing: no batch says whose they are."
            else:
                yield f"The batch of leaf {first} on says of other leaves too, or not of all."


def _wrong_tiles(size: int) -> Iterator[str]:
    """Above the lowest level: one for each 65,536 leaves."""
    for tile in Tile.objects.filter(level__gt=0).order_by("level", "index").iterator():
        below = Tile.objects.filter(level=tile.level - 1, index__gte=tile.index * TILE)
        roots = below.filter(index__lt=(tile.index + 1) * TILE).order_by("index")
        hashes = [bytes(root) for root in roots.values_list("root", flat=True)]
        if split(bytes(tile.hashes)) != hashes or [bytes(tile.root)] != peaks(hashes):
            yield f"Tile {tile.level}/{tile.index} is not what the tiles below it say."
    counted = Tile.objects.values_list("level").annotate(Count("index")).order_by()
    counts = dict(counted)
    for level in range(max(counts, default=0) + 2):
        there, whole = counts.get(level, 0), size >> HEIGHT * (level + 1)
        if there != whole:
            yield f"There are {there} tiles of level {level}, and {whole} would be whole."


def _changed_names() -> Iterator[str]:
    """What entries name stands once: here, and not at each of them."""
    names = Name.objects.order_by("pk").values_list("pk", *StoredName._fields)
    wrong = (pk for pk, *name in names.iterator() if not StoredName._make(name).holds)
    for pk in islice(wrong, MOST):
        yield f"Name {pk} was changed: it is not what entries that bear it were sealed with."


def _overdue() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(OVERDUE, [LATE.total_seconds(), STEP.total_seconds(), MOST])
        return [
            f"Entry {pk} of {moment(at)} is not sealed: nothing proves it, and nothing would prove "
            "that it is gone. Does the sealer run?"
            for pk, at in cursor.fetchall()
        ]


def unsealed() -> int:
    with connection.cursor() as cursor:
        cursor.execute(UNSEALED)
        return int(cursor.fetchone()[0])
