"""The record in the database against what was signed: whoever changed a row is found out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from django.db import connection

from audit.bodies import EntryReader, body, leaf
from audit.clock import clock_steps
from audit.leaves import first_batch, first_id, places, sealed_size
from audit.models import Checkpoint, EntryRow, Name
from audit.parts import Part, PartFindings, check_part
from audit.processes import spread
from audit.signing import keys
from audit.structure import changed_names, forgotten, overdue, unlikely_batches, wrong_tiles
from audit.tree import Tree
from audit.tree_above import TreeAbove
from audit.verify import RESTORED, TILE, Check, Findings

# Tiles of one part: 16,384 leaves.
PART = 64
# What so many parts take is less than starting processes does.
FEW = 4

# Which parts of the tree any batch speaks of.
PARTS = """
    SELECT DISTINCT n FROM audit_batch b
    CROSS JOIN generate_series(b.first_index / %s, (b.first_index + b.leaves - 1) / %s) n
    WHERE b.first_index >= %s AND n >= %s ORDER BY n
"""


class NotSigned(Exception):
    """There is no checkpoint of the size that is to be trusted."""


def check_live(anchors: Sequence[str] = (), *, since: int = 0) -> Findings:
    """Every entry, leaf and checkpoint, on every core: a million takes about a minute on two.

    With `since` those from about the checkpoint of that size on, which is trusted. Raises
    NotSigned."""
    check = Check(keys(), anchors)
    signed = Checkpoint.objects.filter(size__gte=since).order_by("id")
    for note in signed.values_list("note", flat=True).iterator():
        check.checkpoint(note)
    steps, notes = clock_steps(read for what, read in check.signed if what == "a checkpoint")
    check.found.notes += notes
    if since:
        _trust(check, since)
    check.expect()
    size, first = sealed_size(), _first_tile(since)
    for sentence in unlikely_batches(first * TILE):
        check.found.say(sentence)
    _declared_before(first * TILE, check)
    tree = TreeAbove(check, first, size)
    for found in _checked(list(_parts(first, size, check.wanted, steps))):
        tree.add(found)
    tree.finish()
    check.compare()
    if check.found.size and not check.signed:
        check.found.say("There are leaves, and no checkpoint that a known key signed.")
    notes, undeclared = forgotten()
    oldest = first_new_id(since)
    for sentence in [
        *wrong_tiles(size, first * TILE),
        *overdue(oldest),
        *changed_names(oldest),
        *undeclared,
    ]:
        check.found.say(sentence)
    check.found.notes += notes
    return check.found


def first_new_id(since: int) -> int:
    """The first entry id to read after the checkpoint of `since`; 0 for all."""
    first = _first_tile(since)
    return first_id(first * TILE) if first else 0


def _trust(check: Check, size: int) -> None:
    check.trust(size)
    if not any(read.size == size for _, read in check.signed):
        raise NotSigned(f"No checkpoint of {size} entries is there to go on from.")
    check.found.notes.append(
        f"Leaves before {_first_tile(size) * TILE} were not read: the checkpoint of {size} entries "
        "is trusted."
    )


def _first_tile(since: int) -> int:
    # One more than needed: times are compared with those of the entries before.
    return max(0, since // TILE - 1)


def _declared_before(index: int, check: Check) -> None:
    """Restores that the part of the record declares which is trusted."""
    if index:
        actions = Name.objects.filter(kind="action", text=RESTORED).values_list("pk", flat=True)
        ids = EntryRow.objects.filter(action__in=list(actions)).values_list("pk", flat=True)
        declared, tree = EntryReader().rows(ids), Tree(index)
        for pk, place in sorted(places(declared).items(), key=lambda one: one[1]):
            if place < index and leaf(declared[pk]) == tree.leaf(place):
                check.restore(place, body(declared[pk]))


def _checked(parts: Sequence[Part]) -> Iterable[PartFindings]:
    cores = len(os.sched_getaffinity(0))
    if len(parts) <= FEW or cores == 1:
        return map(check_part, parts)
    return spread(check_part, parts, processes=cores)


def _parts(
    first: int, size: int, wanted: Iterable[int], steps: Mapping[int, int]
) -> Iterator[Part]:
    sizes: dict[int, list[int]] = {}
    for one in wanted:
        sizes.setdefault(max(0, one - 1) // (PART * TILE), []).append(one)
    last = -(-size // TILE)
    with connection.cursor() as cursor:
        cursor.execute(PARTS, [PART * TILE, PART * TILE, first_batch(first * TILE), first // PART])
        numbers = [int(n) for (n,) in cursor.fetchall()]
    for n in numbers:
        end = min(last, (n + 1) * PART)
        yield Part(max(first, n * PART), end, size, frozenset(sizes.get(n, [])), steps)
