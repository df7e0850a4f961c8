"""The record in the database against what was signed: whoever changed a row is found out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from audit.bodies import COLUMNS, body, moment
from audit.models import Checkpoint, Entry, Leaf
from audit.sealing import public_key
from audit.verify import Check, Findings, canonical, leaf_hash

CHUNK = 2000
MOST = 50
# No transaction of ours is open for so long.
LATE = timedelta(hours=1)

UNSEALED = """
    SELECT count(*) FROM audit_entry e
    WHERE (SELECT true FROM audit_leaf l WHERE l.entry_id = e.id) IS NOT TRUE
"""


def check_live(anchors: Sequence[str] = ()) -> Findings:
    """Every entry, leaf and checkpoint; some seconds for a hundred thousand."""
    check = Check(public_key(), anchors)
    for note in Checkpoint.objects.order_by("id").values_list("note", flat=True).iterator():
        check.checkpoint(note)
    check.expect()
    newest = datetime.min.replace(tzinfo=UTC)
    for leaf, row in _pairs():
        _compare(check, leaf, row, newest)
        newest = max(newest, row["at"]) if row else newest
    check.compare()
    return check.found


def _compare(check: Check, leaf: Leaf, row: dict[str, Any] | None, newest: datetime) -> None:
    found, kept = check.found, bytes(leaf.hash)
    if len(found.wrong) < MOST and (sentence := _wrong(leaf, row, kept, newest)):
        found.say(sentence)
    found.entries += 1
    check.leaf(leaf.index, kept)


def _wrong(leaf: Leaf, row: dict[str, Any] | None, kept: bytes, newest: datetime) -> str:
    if row is None:
        return f"Entry {leaf.entry_id} is gone: its leaf {leaf.index} is still there."
    if leaf_hash(bytes(leaf.salt), canonical(body(row))) != kept:
        return f"Entry {leaf.entry_id} was changed: it is not what leaf {leaf.index} says."
    # A row that somebody puts in later is sealed later: after those that it claims to precede.
    if row["at"] + LATE < newest:
        return (
            f"Entry {leaf.entry_id} says {moment(row['at'])}, and was put in after one of "
            f"{moment(newest)}: as leaf {leaf.index}."
        )
    return ""


def _pairs() -> Iterator[tuple[Leaf, dict[str, Any] | None]]:
    after = -1
    while leaves := list(Leaf.objects.filter(index__gt=after).order_by("index")[:CHUNK]):
        ids = [leaf.entry_id for leaf in leaves]
        rows = {row["id"]: row for row in Entry.objects.filter(pk__in=ids).values(*COLUMNS)}
        for leaf in leaves:
            yield leaf, rows.get(leaf.entry_id)
        after = leaves[-1].index


def unsealed() -> int:
    with connection.cursor() as cursor:
        cursor.execute(UNSEALED)
        return int(cursor.fetchone()[0])
