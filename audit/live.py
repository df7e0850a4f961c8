"""The record in the database against what was signed: whoever changed a row is found out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from audit import lines
from audit.bodies import LEAF_COLUMNS, body, leaf, moment
from audit.models import Checkpoint, Entry, Leaf
from audit.signing import keys
from audit.verify import RESTORED, Check, Findings, Root

CHUNK = 2000
MOST = 50
# So long an entry may go without its leaf, or come after younger ones: the transaction_timeout of
# the application's role (docs/install.md), and ten seconds.
LATE = timedelta(seconds=60)
# Two clocks that are set right do not differ by more.
STEP = timedelta(seconds=10)

# What nobody sealed: by the database's own clock and the sealer's place, not by any row's word.
OVERDUE = """
    SELECT e.id, e.at FROM audit_entry e
    WHERE (SELECT true FROM audit_leaf l WHERE l.entry_id = e.id) IS NOT TRUE
      AND e.at NOT BETWEEN clock_timestamp() - make_interval(secs => %s)
                       AND clock_timestamp() + make_interval(secs => %s)
    ORDER BY e.id LIMIT %s
"""
UNSEALED = """
    SELECT count(*) FROM audit_entry e
    WHERE (SELECT true FROM audit_leaf l WHERE l.entry_id = e.id) IS NOT TRUE
"""


class Order:
    """Leaves come nearly in the order of their entries' times; where the clock was set back, which
    the checkpoints tell, it begins anew."""

    def __init__(self, roots: Iterable[Root]) -> None:
        self.newest = datetime.min.replace(tzinfo=UTC)
        # First leaf of the batch in which the clock went back → the first after it.
        self.steps: dict[int, int] = {}
        self.notes: list[str] = []
        self._until = 0
        before: tuple[int, datetime] | None = None
        for root in roots:
            at = datetime.fromisoformat(root.time)
            if before and at < before[1] - STEP:
                self.steps[before[0]] = root.size
                self.notes.append(
                    f"The clock went back from {moment(before[1])} to {moment(at)}, at leaf "
                    f"{before[0]}: times before and after do not compare."
                )
            before = root.size, at

    def late(self, index: int, at: datetime) -> bool:
        self._until = self.steps.get(index, self._until)
        if index < self._until:
            self.newest = at
        late = at + LATE < self.newest
        self.newest = max(self.newest, at)
        return late


def check_live(anchors: Sequence[str] = ()) -> Findings:
    """Every entry, leaf and checkpoint; some seconds for a hundred thousand."""
    check = Check(keys(), anchors)
    for note in Checkpoint.objects.order_by("id").values_list("note", flat=True).iterator():
        check.checkpoint(note)
    check.expect()
    order = Order(read for what, read in check.signed if what == "a checkpoint")
    check.found.notes += order.notes
    for leaves, rows in _chunks():
        for sealed in leaves:
            row = rows.get(sealed.entry_id)
            _compare(check, sealed, row, order)
            if row and row["action"] == RESTORED:
                check.restore(sealed.index, body(row))
        _compare_lines(check.found, rows)
    check.compare()
    if check.found.size and not check.signed:
        check.found.say("There are leaves, and no checkpoint that a known key signed.")
    for sentence in [*_overdue(), *_stray_lines()]:
        check.found.say(sentence)
    return check.found


def _compare(check: Check, sealed: Leaf, row: dict[str, Any] | None, order: Order) -> None:
    found, kept = check.found, bytes(sealed.hash)
    if len(found.wrong) < MOST and (sentence := _wrong(sealed, row, kept, order)):
        found.say(sentence)
    found.entries += 1
    check.leaf(sealed.index, kept)


def _wrong(sealed: Leaf, row: dict[str, Any] | None, kept: bytes, order: Order) -> str:
    if row is None:
        return f"Entry {sealed.entry_id} is gone: its leaf {sealed.index} is still there."
    if leaf(row) != kept:
        return f"Entry {sealed.entry_id} was changed: it is not what leaf {sealed.index} says."
    # A row that somebody puts in later is sealed later: after those that it claims to precede.
    newest = order.newest
    if order.late(sealed.index, row["at"]):
        return (
            f"Entry {sealed.entry_id} says {moment(row['at'])}, and was put in after one of "
            f"{moment(newest)}: as leaf {sealed.index}."
        )
    return ""


def _compare_lines(found: Findings, ids: Collection[int]) -> None:
    if len(found.wrong) >= MOST:
        return
    for pk in lines.disagreeing(ids)[:MOST]:
        found.say(
            f"Entry {pk} is searched for by other words than its own: its line was changed, and "
            "filters may not find it."
        )


def _stray_lines() -> list[str]:
    return [
        f"There is a line of entry {pk}, which was never sealed: filters find what is not there."
        for pk in lines.stray(MOST)
    ]


def _overdue() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(OVERDUE, [LATE.total_seconds(), STEP.total_seconds(), MOST])
        return [
            f"Entry {pk} of {moment(at)} is not sealed: nothing proves it, and nothing would prove "
            "that it is gone. Does the sealer run?"
            for pk, at in cursor.fetchall()
        ]


def _chunks() -> Iterator[tuple[list[Leaf], dict[int, dict[str, Any]]]]:
    """Leaves in their order, and the entries of theirs that are there."""
    after = -1
    while leaves := list(Leaf.objects.filter(index__gt=after).order_by("index")[:CHUNK]):
        ids = [sealed.entry_id for sealed in leaves]
        yield (
            leaves,
            {row["id"]: row for row in Entry.objects.filter(pk__in=ids).values(*LEAF_COLUMNS)},
        )
        after = leaves[-1].index


def unsealed() -> int:
    with connection.cursor() as cursor:
        cursor.execute(UNSEALED)
        return int(cursor.fetchone()[0])
