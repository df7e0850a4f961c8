"""The sealer: gives every entry its leaf, and signs what it has, after the fact.

Agents' writes know nothing of it. Whoever runs it, one at a time: an advisory lock says who.
"""

from __future__ import annotations

import os
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.db import connection, transaction

from audit.bodies import COLUMNS, body, moment
from audit.models import Checkpoint, Entry, Sealing
from audit.verify import (
    ORIGIN,
    Key,
    Peaks,
    canonical,
    checkpoint_text,
    leaf_hash,
)
from core import seal as keys

BATCH = 2000
# A checkpoint now and then also when nothing happens: silence is said, not left to be guessed.
IDLE = timedelta(hours=1)
# Ids are given out before they are written. So long may a writer dawdle between the two.
DAWDLING = timedelta(seconds=10)
# Nodes are kept where a proof would otherwise have to read more than this many hashes.
STRIDE = 8

UNSEALED = """
    SELECT e.id FROM audit_entry e
    WHERE e.id > %s
      AND (SELECT true FROM audit_leaf l WHERE l.entry_id = e.id) IS NOT TRUE
    ORDER BY e.id LIMIT %s
"""
LEAVES = """
    INSERT INTO audit_leaf (index, entry_id, salt, hash)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[], %s::bytea[])
"""
NODES = """
    INSERT INTO audit_node (level, index, hash)
    SELECT * FROM unnest(%s::smallint[], %s::bigint[], %s::bytea[])
"""
LINES = """
    INSERT INTO audit_line (entry_id, at, action, actor, agent, person, server, tool, definition,
                            effect, rule)
    SELECT id, at, action, CASE WHEN actor_kind = 'person' THEN actor ELSE '' END,
           agent, person, server, tool, left(definition_digest, 16),
           left(COALESCE(details ->> 'effect', ''), 5), left(COALESCE(details ->> 'rule', ''), 200)
    FROM audit_entry WHERE id = ANY(%s)
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Which transactions have ended, and which have not begun."""

    ended_below: int
    begun_below: int
    now: datetime


@cache
def private_key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(keys.key("audit checkpoints"))


def public_key() -> Key:
    raw = private_key().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return Key(ORIGIN, raw)


def signed(size: int, root: bytes, at: datetime) -> str:
    key = public_key()
    text = checkpoint_text(key, size, root, moment(at))
    signature = b64encode(key.id + private_key().sign(text.encode())).decode()
    return f"{text}\n— {key.name} {signature}\n"


def seal_all() -> int:
    """Until nothing is left; how many entries got their leaf."""
    total = 0
    while done := seal():
        total += done
    return total


@transaction.atomic
def seal(most: int = BATCH) -> int:
    """One batch. 0 also when another process is at it."""
    if not _alone():
        return 0
    progress, _made = Sealing.objects.get_or_create(pk=1)
    # Before looking: what had ended by then is seen.
    horizon = _horizon()
    ids = _unsealed(progress.settled_id, most)
    if ids:
        _give_leaves(progress, ids)
    if ids or _silent(horizon.now):
        _sign(progress, horizon.now)
    if len(ids) < most:
        _settle(progress, horizon, ids)
    progress.save()
    return len(ids)


def _alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('countersign audit'))")
        return bool(cursor.fetchone()[0])


def _horizon() -> Horizon:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_snapshot_xmin(s)::text::numeric, pg_snapshot_xmax(s)::text::numeric,"
            " clock_timestamp() FROM pg_current_snapshot() s"
        )
        ended, begun, now = cursor.fetchone()
        return Horizon(int(ended), int(begun), now)


def _unsealed(above: int, most: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(UNSEALED, [above, most])
        return [pk for (pk,) in cursor.fetchall()]


def _give_leaves(progress: Sealing, ids: list[int]) -> None:
    tree = Peaks(progress.size, map(bytes, progress.peaks))
    salts, leaves, nodes = [], [], []
    for row in Entry.objects.filter(pk__in=ids).order_by("pk").values(*COLUMNS):
        salts.append(os.urandom(16))
        leaves.append(leaf_hash(salts[-1], canonical(body(row))))
        nodes += [made for made in tree.append(leaves[-1]) if made[0] % STRIDE == 0]
    with connection.cursor() as cursor:
        places = list(range(progress.size, tree.size))
        cursor.execute(LEAVES, [places, ids, salts, leaves])
        cursor.execute(LINES, [ids])
        if nodes:
            cursor.execute(NODES, [list(column) for column in zip(*nodes, strict=True)])
    progress.size, progress.peaks = tree.size, tree.peaks


def _silent(now: datetime) -> bool:
    newest = Checkpoint.objects.first()
    return newest is not None and newest.at < now - IDLE


def _sign(progress: Sealing, now: datetime) -> None:
    root = Peaks(progress.size, map(bytes, progress.peaks)).root()
    note = signed(progress.size, root, now.astimezone(UTC))
    Checkpoint.objects.create(size=progress.size, root=root, at=now, note=note)


def _settle(progress: Sealing, horizon: Horizon, ids: list[int]) -> None:
    """Below the settled id nobody looks again.

    Ids are given out in order and written out of order: a mark counts once every transaction that
    had begun when it was set has ended, and those had time that drew an id and had not begun.
    """
    restored = progress.mark_xid > horizon.begun_below
    due = progress.mark_at is not None and progress.mark_at < horizon.now - DAWDLING
    if due and not restored and horizon.ended_below >= progress.mark_xid:
        progress.settled_id = progress.mark_id
    if due or restored or progress.mark_at is None:
        progress.mark_id = max([progress.mark_id, *ids])
        progress.mark_xid, progress.mark_at = _horizon().begun_below, horizon.now
