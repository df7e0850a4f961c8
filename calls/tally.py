"""How many calls ever came to each state, exactly, without counting them all each time.

Every move of a call has its entry. Those up to one that nothing can come before are counted
once, away from the path of agents; whoever asks counts the rest.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from django.db import connection, transaction

from calls.models import MoveTally

# A writer may take so long between drawing an entry's id and beginning to write.
DAWDLING_S = 10.0
# Entries that are counted at once, and how often in one round.
STEP, STEPS = 500_000, 10
LAST_ID = 2**63 - 1

MOVES = """
    SELECT to_state, count(*) FROM audit_entryrow
    WHERE id > %s AND id <= %s AND seq IS NOT NULL AND to_state <> from_state GROUP BY to_state
"""
HORIZON = """
    SELECT pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint, coalesce((
        SELECT id FROM audit_entryrow WHERE at < clock_timestamp() - make_interval(secs => %s)
        ORDER BY id DESC LIMIT 1
    ), 0) FROM pg_current_snapshot() s
"""


class CountHorizon(NamedTuple):
    ended_below: int
    begun_below: int
    # Whoever drew an id up to here has begun to write.
    last_id: int


def advance() -> None:
    """Counts what is settled. Lost, it is done a minute later; others do it at the same time in
    vain."""
    for _ in range(STEPS):
        if not _step():
            return


@transaction.atomic
def _step() -> bool:
    """True where more may be counted at once."""
    MoveTally.objects.get_or_create(pk=1)
    tally = MoveTally.objects.select_for_update(skip_locked=True).first()
    if tally is None:
        return False
    now = _horizon()
    if tally.horizon > now.begun_below:
        # Of the database that this one was restored from, whose transactions had other numbers.
        tally.horizon = now.begun_below
    elif tally.horizon <= now.ended_below:
        _count(tally)
    is_behind = tally.reached < tally.ahead
    if not is_behind:
        tally.ahead, tally.horizon = max(tally.ahead, now.last_id), now.begun_below
    tally.save()
    return is_behind and tally.horizon <= now.ended_below


def count_all() -> dict[str, int]:
    """By state, how many calls ever came to it. Exact in a transaction that sees one moment."""
    tally = MoveTally.objects.first() or MoveTally()
    return _with_moves(tally, LAST_ID)


def _count(tally: MoveTally) -> None:
    until = min(tally.ahead, tally.reached + STEP)
    tally.counts = _with_moves(tally, until)
    tally.reached = until


def _with_moves(tally: MoveTally, until: int) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(MOVES, [tally.reached, until])
        return dict(Counter(tally.counts) + Counter(dict(cursor.fetchall())))


def _horizon() -> CountHorizon:
    with connection.cursor() as cursor:
        cursor.execute(HORIZON, [DAWDLING_S])
        return CountHorizon(*cursor.fetchone())
