"""Checks batches, tiles, names and entries against each other, by queries over the database."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from django.db import connection

from audit.bodies import StoredName
from audit.clock import LATE, STEP
from audit.leaves import SEALED, SEALED_LATELY, first_batch
from audit.models import Name, Tile
from audit.parts import FINDINGS_MAX
from audit.tree import HEIGHT, split
from audit.verify import FORGOTTEN, TILE, moment, peaks

# A tree of more levels of tiles than any record has.
MOST_LEVELS = 7
# What nobody sealed: by the database's own clock and the sealer's place, not by any row's word.
OVERDUE = """
    SELECT e.id, e.at FROM audit_entryrow e CROSS JOIN {sealed}
    WHERE NOT sealed.ids @> e.id AND {those}
      AND e.at NOT BETWEEN clock_timestamp() - make_interval(secs => %(late)s)
                       AND clock_timestamp() + make_interval(secs => %(step)s)
    ORDER BY e.id LIMIT %(most)s
"""
UNSEALED = """
    SELECT count(*) FROM audit_entryrow e CROSS JOIN {sealed}
    WHERE NOT sealed.ids @> e.id AND {those}
"""
# Commitments that stand alone, and whether an entry names them.
ALONE = """
    WITH declared AS (
        SELECT DISTINCT jsonb_array_elements_text(CASE jsonb_typeof(e.details -> 'commitments')
            WHEN 'array' THEN e.details -> 'commitments' ELSE '[]' END) AS commitment
        FROM audit_entryrow e JOIN audit_name a ON a.id = e.action
        WHERE a.kind = 'action' AND a.text = %(action)s
    )
    SELECT what, d.commitment IS NOT NULL FROM (
        SELECT 'Name ' || id AS what, encode(commitment, 'hex') AS commitment
        FROM audit_name WHERE salt IS NULL
        UNION ALL
        SELECT 'What entry ' || id || ' said in its details', details ->> 'commitment'
        FROM audit_entryrow WHERE salt IS NULL
    ) alone LEFT JOIN declared d USING (commitment) ORDER BY 1
"""
# Each batch begins where the one before it ends, and has an id for each of its leaves.
UNLIKELY = """
    SELECT first_index, expected FROM (
        SELECT b.first_index, b.leaves,
            lag(b.first_index + b.leaves, 1, %(first)s::bigint) OVER (ORDER BY b.first_index)
                AS expected,
            (SELECT sum(upper(r) - lower(r)) FROM unnest(b.ids) r) AS ids
        FROM audit_batch b WHERE first_index >= %(first)s
    ) batch WHERE first_index <> expected OR leaves <> ids ORDER BY first_index
    LIMIT %(most)s
"""
# Names that these entries bear; by their key, however many there are.
BORNE = """
    SELECT n.* FROM (
        SELECT DISTINCT unnest(
            ARRAY[r.action, r.actor, r.agent, r.person, r.tool, r.context, r.reason]) AS id
        FROM audit_entryrow r WHERE r.id >= %s
    ) used
    CROSS JOIN LATERAL (SELECT id, {columns} FROM audit_name WHERE id = used.id LIMIT 1) n
    ORDER BY 1
"""


def unlikely_batches(first: int = 0) -> Iterator[str]:
    """Findings on batches, from that of this leaf on."""
    with connection.cursor() as cursor:
        cursor.execute(UNLIKELY, {"first": first_batch(first), "most": FINDINGS_MAX})
        for first, expected in cursor.fetchall():
            if first > expected:
                yield f"Leaves {expected} to {first - 1} are missing: no batch says whose they are."
            else:
                yield f"The batch of leaf {first} on says of other leaves too, or not of all."


def wrong_tiles(size: int, first: int = 0) -> Iterator[str]:
    """Above the lowest level: one for each 65,536 leaves; those that leaf `first` or a later one is
    in."""
    for level in range(1, MOST_LEVELS):
        yield from _wrong_tiles_of(level, first)
    yield from _wrong_counts(size, first)


def _wrong_tiles_of(level: int, first: int) -> Iterator[str]:
    tiles = Tile.objects.filter(level=level, index__gte=first >> HEIGHT * (level + 1))
    for tile in tiles.order_by("index").iterator():
        below = Tile.objects.filter(level=tile.level - 1, index__gte=tile.index * TILE)
        roots = below.filter(index__lt=(tile.index + 1) * TILE).order_by("index")
        hashes = [bytes(root) for root in roots.values_list("root", flat=True)]
        if split(bytes(tile.hashes)) != hashes or [bytes(tile.root)] != peaks(hashes):
            yield f"Tile {tile.level}/{tile.index} is not what the tiles below it say."


def _wrong_counts(size: int, first: int) -> Iterator[str]:
    for level in range(MOST_LEVELS):
        height = HEIGHT * (level + 1)
        later = Tile.objects.filter(level=level, index__gte=first >> height)
        there, whole = (first >> height) + later.count(), size >> height
        if there != whole:
            yield f"There are {there} tiles of level {level}, and {whole} would be whole."


def changed_names(first_id: int = 0) -> Iterator[str]:
    """Findings on changed names, each once; of all names, or of entries from an id on."""
    wrong = (pk for pk, name in _names(first_id) if not name.holds)
    for pk in islice(wrong, FINDINGS_MAX):
        yield f"Name {pk} was changed: it is not what entries that bear it were sealed with."


def forgotten() -> tuple[list[str], list[str]]:
    """A note on what was forgotten, and findings on what is gone with no entry that declares it."""
    with connection.cursor() as cursor:
        cursor.execute(ALONE, {"action": FORGOTTEN})
        found = cursor.fetchall()
    undeclared = [
        f"{what} was forgotten, and no entry says so." for what, said in found if not said
    ]
    if not found:
        return [], []
    note = (
        f"{len(found)} names or details were forgotten: the entries that had them hold, and do not "
        "say them."
    )
    return [note], undeclared[:FINDINGS_MAX]


def _names(first_id: int) -> Iterator[tuple[int, StoredName]]:
    if not first_id:
        names = Name.objects.order_by("pk").values_list("pk", *StoredName._fields)
        yield from ((pk, StoredName._make(name)) for pk, *name in names.iterator())
        return
    with connection.cursor() as cursor:
        cursor.execute(BORNE.format(columns=", ".join(StoredName._fields)), [first_id])
        yield from ((pk, StoredName._make(name)) for pk, *name in cursor.fetchall())


def overdue(first_id: int = 0) -> list[str]:
    """Unsealed entries from that id on."""
    tolerance = {"late": LATE.total_seconds(), "step": STEP.total_seconds(), "most": FINDINGS_MAX}
    with connection.cursor() as cursor:
        cursor.execute(_of_unsealed(OVERDUE, first_id), {**tolerance, "first": first_id})
        return [
            f"Entry {pk} of {moment(at)} is not sealed: nothing proves it, and nothing would prove "
            "that it is gone. Does the sealer run?"
            for pk, at in cursor.fetchall()
        ]


def unsealed(first_id: int = 0) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_of_unsealed(UNSEALED, first_id), {"first": first_id})
        return int(cursor.fetchone()[0])


def _of_unsealed(query: str, first_id: int) -> str:
    if not first_id:
        return query.format(sealed=SEALED, those="true")
    return query.format(sealed=SEALED_LATELY, those="e.id >= %(first)s")
