"""Which entry is which leaf: read from batches, each of which holds some thousand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Any

from django.db import connection

from audit.models import Batch

# SQL: a set of the ids of all entries that are sealed, as `sealed.ids`.
SEALED = """(
    SELECT COALESCE(range_agg(ids), '{}') AS ids FROM audit_batch
) sealed"""
# SQL: the leaf index of the entry `f.id`, if it is sealed.
PLACE = """
    SELECT b.first_index + (
        SELECT COALESCE(sum(upper(r) - lower(r)), 0)
        FROM unnest(b.ids * int8multirange(int8range(NULL, f.id))) r) AS index
    FROM audit_batch b WHERE b.ids @> f.id
"""
PLACES = f"""
    SELECT f.id, p.index FROM unnest(%s::bigint[]) f (id) CROSS JOIN LATERAL ({PLACE}) p
"""
# The same of those from an id on: reads the batches that have one of these.
SEALED_LATELY = """(
    SELECT COALESCE(range_agg(ids), '{}') AS ids FROM audit_batch
    WHERE ids && int8multirange(int8range(%(first)s, NULL))
) sealed"""
FIRST_ID = "SELECT min(lower(ids)) FROM audit_batch WHERE first_index >= %s"
# Of the last batch alone, and by its key.
SIZE = "SELECT first_index + leaves FROM audit_batch ORDER BY first_index DESC LIMIT 1"


def sealed_size() -> int:
    """How many leaves there are."""
    with connection.cursor() as cursor:
        cursor.execute(SIZE)
        row = cursor.fetchone()
        return int(row[0]) if row else 0


def first_batch(index: int) -> int:
    """The first leaf of the batch that leaf `index` is in."""
    before = Batch.objects.filter(first_index__lte=index).order_by("-first_index")
    return before.values_list("first_index", flat=True).first() or 0


def first_id(index: int) -> int:
    """The smallest id of the entries of leaf `index` and the later ones, by batches; or of an entry
    before, since a batch is looked at as a whole."""
    with connection.cursor() as cursor:
        cursor.execute(FIRST_ID, [first_batch(index)])
        return int(cursor.fetchone()[0] or 0)


def places(ids: Collection[int]) -> dict[int, int]:
    """The leaf index of each sealed entry, by id."""
    with connection.cursor() as cursor:
        cursor.execute(PLACES, [list(ids)])
        return {pk: int(index) for pk, index in cursor.fetchall()}


def as_ranges(ids: Iterable[int]) -> str:
    """Ids in ascending order, as PostgreSQL writes a multirange."""
    runs = groupby(enumerate(ids), lambda one: one[1] - one[0])
    spans = ([pk for _, pk in run] for _, run in runs)
    return "{" + ",".join(f"[{span[0]},{span[-1]}]" for span in spans) + "}"


def ids_of(batch: Batch) -> Iterator[int]:
    """In the order of its leaves."""
    one: Any
    for one in batch.ids:
        yield from range(one.lower, one.upper)


def in_order(first: int = 0, last: int | None = None) -> Iterator[tuple[int, int]]:
    """(index, id of the entry) of each leaf from `first` up to `last`, as batches tell it."""
    found = Batch.objects.filter(first_index__gte=first_batch(first))
    if last is not None:
        found = found.filter(first_index__lt=last)
    for batch in found.order_by("first_index").iterator(chunk_size=100):
        for index, pk in enumerate(ids_of(batch), start=batch.first_index):
            if index >= first and (last is None or index < last):
                yield index, pk
