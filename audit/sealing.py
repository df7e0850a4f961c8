"""The sealer: gives every entry its leaf, and signs what it has, after the fact.

Agents' writes know nothing of it. Whoever runs it, one at a time: an advisory lock says who.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction

from audit import origins
from audit.bodies import EntryReader, leaf
from audit.leaves import SEALED, as_ranges, sealed_size
from audit.models import Checkpoint
from audit.signing import SigningKey, any_key, held_key, keys, open_key, public_key, rotate
from audit.tree import NewTile, RightEdge, Tree
from audit.verify import TILE, Broken, checkpoint_text, moment, read_known, read_trusted

BATCH = 2000
# A checkpoint now and then also when nothing happens: silence is said, not left to be guessed.
IDLE = timedelta(hours=1)
# Ids are given out before they are written. So long may a writer dawdle between the two.
DAWDLING = timedelta(seconds=10)
LAST_ID = 2**63 - 1

# Of each range of ids, in its order, the entries that are there.
ARRIVED = """
    SELECT e.id FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY AS r (first, last, place)
    CROSS JOIN LATERAL (
        SELECT id FROM audit_entryrow WHERE id BETWEEN r.first AND r.last ORDER BY id LIMIT %s
    ) e
    ORDER BY r.place, e.id LIMIT %s
"""
# Every id up to the last one sealed that has no leaf.
MISSING = f"""
    SELECT lower(r), upper(r) - 1
    FROM (
        SELECT int8multirange(int8range(1, upper(ids))) - ids AS missing FROM {SEALED}
    ) m CROSS JOIN unnest(m.missing) r WHERE NOT upper_inf(r) ORDER BY 1
"""
BATCHES = """
    INSERT INTO audit_batch (first_index, leaves, ids, edge) VALUES (%s, %s, %s, %s)
"""
TILES = """
    INSERT INTO audit_tile (level, index, hashes, root)
    SELECT * FROM unnest(%s::smallint[], %s::bigint[], %s::bytea[], %s::bytea[])
"""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Which transactions have ended, and which have not begun."""

    ended_below: int
    begun_below: int
    now: datetime


def signed(size: int, root: bytes, at: datetime, *by: SigningKey, origin: int = 1) -> str:
    text = checkpoint_text(by[0].key.under(origin), size, root, moment(at))
    return f"{text}\n{''.join(key.sign(text, origin=origin) for key in by)}"


class Inconsistent(Exception):
    """The sealed entries differ from what this sealer sealed or signed."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Ids that were given out, and of which no entry has come: its writer dawdles, or gave up."""

    first: int
    last: int
    seen_at: datetime
    # No transaction that could fill it began after this one.
    horizon: int | None = None

    def without(self, pk: int) -> list[Gap]:
        parts = replace(self, last=pk - 1), replace(self, first=pk + 1)
        return [part for part in parts if part.first <= part.last]

    def at(self, now: Horizon) -> Gap | None:
        """The gap as it is now; None when nothing can fill it any more."""
        if self.horizon is None:
            # Whoever drew an id of it has begun by then.
            due = self.seen_at < now.now - DAWDLING
            return replace(self, horizon=now.begun_below) if due else self
        return self if now.ended_below < self.horizon else None


@dataclass(frozen=True, slots=True)
class SealingPosition:
    """How far sealing is. It moves with every batch, and is read from batches and tiles alone."""

    tree: RightEdge
    # Every id up to here has its leaf or is in a gap.
    reached: int
    gaps: list[Gap]
    # Of which record: after a restore the leaves may be others.
    origin: int
    key: SigningKey

    def arrived(self, most: int) -> list[int]:
        """Ids of entries without a leaf, in order: reads these and hardly more."""
        firsts = [*(gap.first for gap in self.gaps), self.reached + 1]
        lasts = [*(gap.last for gap in self.gaps), LAST_ID]
        with connection.cursor() as cursor:
            cursor.execute(ARRIVED, [firsts, lasts, most, most])
            return [pk for (pk,) in cursor.fetchall()]

    def after(self, ids: list[int], tree: RightEdge, now: Horizon) -> SealingPosition:
        gaps = [gap for one in self.gaps if (gap := one.at(now))]
        reached = self.reached
        for pk in ids:
            if pk > reached:
                if pk > reached + 1:
                    gaps.append(Gap(reached + 1, pk - 1, now.now))
                reached = pk
            else:
                gaps = [part for gap in gaps for part in _split(gap, pk)]
        return replace(self, tree=tree, reached=reached, gaps=gaps)


def _split(gap: Gap, pk: int) -> list[Gap]:
    return gap.without(pk) if gap.first <= pk <= gap.last else [gap]


def read_position(*, replace_key: bool = False, lost_key: bool = False) -> SealingPosition:
    """Looks at every batch: once, when a sealer begins. Raises Inconsistent and CannotSign."""
    tree = Tree(sealed_size()).right_edge()
    checkpoint = Checkpoint.objects.first()
    if not (tree.is_whole and _is_signed(tree, checkpoint, by_any=replace_key or lost_key)):
        raise Inconsistent(
            f"The newest checkpoint is of {checkpoint.size if checkpoint else 0} entries, and the "
            f"{tree.size} leaves "
            "are not what it signed: nothing more is sealed. See audit_verify."
        )
    now = _horizon().now
    with connection.cursor() as cursor:
        cursor.execute(MISSING)
        gaps = [Gap(first, last, now) for first, last in cursor.fetchall()]
        cursor.execute(f"SELECT upper(ids) - 1 FROM {SEALED}")
        (reached,) = cursor.fetchone()
    key = any_key() if lost_key else open_key(tree.size, replace=replace_key)
    return SealingPosition(tree, reached or 0, gaps, origins.current(), key)


def _is_signed(tree: RightEdge, checkpoint: Checkpoint | None, *, by_any: bool) -> bool:
    """Does the newest checkpoint say so, in its own words and not only in its row's?"""
    if checkpoint is None:
        return tree.size == 0 or by_any
    if (checkpoint.size, bytes(checkpoint.root)) != (tree.size, tree.root()):
        return False
    try:
        read = (read_known if by_any else read_trusted)(checkpoint.note, keys())
    except Broken:
        return False
    return (read.size, read.root) == (tree.size, tree.root())


def require(note: str) -> None:
    """Raises Inconsistent unless the record goes on from this checkpoint, which was signed here:
    what was cut off, or made anew, is not signed once more."""
    trusted, origin = keys(), origins.current()
    names = {known.key.under(origin).name for known in trusted}
    names.add(origins.name() if origin == 1 else f"{origins.name()}/{origin}")
    if note.partition("\n")[0] not in names:
        return  # of what a restore ended, or of another record that this directory served
    try:
        read = read_known(note, trusted)
    except Broken as error:
        raise Inconsistent(f"The newest checkpoint that was kept here is {error}.") from error
    size = sealed_size()
    if read.size > size or Tree(read.size).right_edge().root() != read.root:
        raise Inconsistent(
            f"The sealer signed {read.size} entries at {read.time}, and the {size} leaves are not "
            "these: nothing more is sealed. See audit_verify."
        )


class Sealing:
    """Seals batch after batch, and remembers where it is."""

    def __init__(self) -> None:
        self._position: SealingPosition | None = None

    def batch(self, most: int = BATCH) -> int:
        """How many entries got their leaf; 0 also when another process is at it, and in a copy of
        the record, which must not sign another future of it."""
        with transaction.atomic():
            if not (_alone() and origins.is_at_home()):
                return 0
            # Before looking: what had ended by then is seen.
            now = _horizon()
            position = self._current()
            ids = position.arrived(most)
            tree = _give_leaves(position.tree, ids)
            if ids or _silent(now.now):
                _sign(tree, now.now, position)
            after = position.after(ids, tree, now)
        # Only now: what was not committed did not happen.
        self._position = after
        return len(ids)

    def _current(self) -> SealingPosition:
        size = sealed_size()
        known = self._position
        origin = origins.current()
        if (
            known is None
            or known.tree.size < size
            or known.origin != origin
            or known.key.key != public_key()
        ):
            # Another process went on meanwhile, a restore was declared, or the key was replaced.
            if known is not None and known.origin == origin:
                _demand_growth(known.tree)
            return read_position()
        if known.tree.size > size:
            raise Inconsistent(
                f"{known.tree.size} leaves were written and {size} are there: nothing more is "
                "sealed until this process starts anew. See audit_verify."
            )
        return known


def _demand_growth(before: RightEdge) -> None:
    if before.root() != Tree(before.size).right_edge().root():
        raise Inconsistent(
            f"The first {before.size} leaves are not those that this process sealed: nothing more "
            "is sealed. See audit_verify."
        )


def seal(most: int = BATCH) -> int:
    return Sealing().batch(most)


def seal_all() -> int:
    """Seals until nothing is left; returns the number of entries."""
    sealing, total = Sealing(), 0
    while done := sealing.batch():
        total += done
    return total


@transaction.atomic
def rotate_key() -> SigningKey:
    """Signs the newest checkpoint with both the old and a new key, and from then on with the new
    one: whoever trusts the old key learns the new one from the note."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('countersign audit'))")
    before = held_key()
    # A key that was lost signs no farewell; what it signed, it signed.
    position = read_position(lost_key=True)
    position = replace(position, key=rotate(position.tree.size))
    _sign(position.tree, _horizon().now, position, *filter(None, [before]))
    return position.key


def seal_declaration(declare: Callable[[int, int], int]) -> None:
    """Leaves for what is left, and one for the entry that `declare` writes and names, told how many
    leaves there were and how many there are then. Signed under the origin that it began.

    In the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('countersign audit'))")
    # The host's owner declares it, with the key that is there: it may be younger than the backup.
    position = read_position(replace_key=True)
    kept = position.tree.size
    while ids := position.arrived(BATCH):
        position = position.after(ids, _give_leaves(position.tree, ids), _horizon())
    entry = declare(kept, position.tree.size)
    begun = replace(position, origin=origins.current())
    _sign(_give_leaves(position.tree, [entry]), _horizon().now, begun)


def _alone() -> bool:
    with connection.cursor() as cursor:
        # By key, whatever the statistics are: they may be from when the record was empty.
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(hashtext('countersign audit')),"
            " set_config('enable_seqscan', 'off', true)"
        )
        return bool(cursor.fetchone()[0])


def _horizon() -> Horizon:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_snapshot_xmin(s)::text::numeric, pg_snapshot_xmax(s)::text::numeric,"
            " clock_timestamp() FROM pg_current_snapshot() s"
        )
        ended, begun, now = cursor.fetchone()
        return Horizon(int(ended), int(begun), now)


def _give_leaves(before: RightEdge, ids: list[int]) -> RightEdge:
    """`ids` are in ascending order."""
    tree = before.copy()
    if not ids:
        return tree
    tiles: list[NewTile] = []
    for row in EntryReader().rows(ids).values():
        tiles += tree.append(leaf(row))
    edge = b"".join(tree.levels[0][max(0, before.size - tree.size // TILE * TILE) :])
    with connection.cursor() as cursor:
        cursor.execute(BATCHES, [before.size, len(ids), as_ranges(ids), edge])
        if tiles:
            cursor.execute(
                TILES, [list(column) for column in zip(*map(astuple, tiles), strict=True)]
            )
    return tree


def _silent(now: datetime) -> bool:
    newest = Checkpoint.objects.first()
    return newest is not None and newest.at < now - IDLE


def _sign(tree: RightEdge, now: datetime, by: SealingPosition, *also: SigningKey) -> None:
    root = tree.root()
    note = signed(tree.size, root, now.astimezone(UTC), by.key, *also, origin=by.origin)
    Checkpoint.objects.create(size=tree.size, root=root, at=now, note=note)
