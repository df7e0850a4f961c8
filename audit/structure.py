"""What batches, tiles, names and entries say of each other, asked of the database as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from django.db import connection
from django.db.models import Count

from audit.bodies import StoredName, moment
from audit.clock import LATE, STEP
from audit.leaves import SEALED
from audit.models import Name, Tile
from audit.parts import MOST
from audit.tree import HEIGHT, split
from audit.verify import TILE, peaks

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


def unlikely_batches() -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute(UNLIKELY, [MOST])
        for first, expected in cursor.fetchall():
            if first > expected:
                yield f"Leaves {expected} to {first - 1} are missing: no batch says whose they are."
            else:
                yield f"The batch of leaf {first} on says of other leaves too, or not of all."


def wrong_tiles(size: int) -> Iterator[str]:
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


def changed_names() -> Iterator[str]:
    """What entries name stands once: here, and not at each of them."""
    names = Name.objects.order_by("pk").values_list("pk", *StoredName._fields)
    wrong = (pk for pk, *name in names.iterator() if not StoredName._make(name).holds)
    for pk in islice(wrong, MOST):
        yield f"Name {pk} was changed: it is not what entries that bear it were sealed with."


def overdue() -> list[str]:
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
