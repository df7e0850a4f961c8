"""Rates in this process: shares of what PostgreSQL keeps for all gateways, spent without asking.

The count itself is one theoretical arrival time (GCRA) for each key of a limit, in the database and
by its clock. A gateway takes several uses of it at once and spends them here; what it has not spent
SHARE_S later it forgets, so that a share is never older than that. Of rates with few uses it takes
one at a time, and then all gateways together are exact.

What a call took that was then refused is spent by another one here, or goes back to the database.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from core.connections import Pool
from core.errors import RecordUnavailable
from policies.limits.compiled import CompiledLimit, CounterKey, LimitKey, TakenUses

# So much of a rate, in seconds of it, is taken at once, and so long it may be spent.
SHARE_S = 0.5
# What was given back may be spent here for so long; then it is the database's again.
RETURN_S = 0.05
# Of a burst, a share is no more than this part: one gateway must not have it all.
PARTS = 10
MOST_KEYS = 20_000
WITHIN_S = 2.0
LEASE = "SELECT granted, wait_s, ahead_s FROM policies_lease(%s, %s, %s, %s, %s, %s, %s, %s, %s)"
# So long it is believed that nothing is left: another gateway may give some back.
BELIEVED_S = 0.5
RETURN = "SELECT policies_return(%s, %s, %s)"
UNREADABLE = "Whether a limit leaves room cannot be known right now. Nothing was sent."

log = logging.getLogger(__name__)

Keep = Callable[[Coroutine[Any, Any, None]], object]


def share_of(limit: CompiledLimit) -> int:
    """So many uses are taken at once. The error of all gateways together is this, for each."""
    return max(1, min(math.floor(SHARE_S / limit.emission_s), limit.burst // PARTS))


@dataclass(slots=True)
class Share:
    left: float = 0.0
    # On the monotonic clock.
    ends_at: float = 0.0
    # Nothing is left for `none_for` uses before then: not asked for again.
    none_until: float = 0.0
    none_for: int = 0
    believed_until: float = 0.0
    # Had it not been taken, the count would have been empty at that time or later.
    busy_until: float = math.inf
    # What is left is going back to the database.
    is_returning: bool = False
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class LimitShares:
    """One for each event loop that serves agents. `keep`: runs what nobody waits for."""

    def __init__(self, pool: Pool, keep: Keep) -> None:
        self._pool, self._keep = pool, keep
        self._shares: dict[tuple[int, str, float, int], Share] = {}

    def spend(self, rates: Iterable[LimitKey], size: int) -> tuple[TakenUses, ...] | None:
        """Takes from this process's shares of all these rates what a call of so many bytes uses, or
        nothing: then returns None."""
        now, found = time.monotonic(), []
        for limit, key in rates:
            share = self._shares.get(_place(limit, key))
            uses = size if limit.counts_bytes else 1
            if share is None or share.left < uses or share.ends_at <= now:
                return None
            found.append((share, limit, key, uses))
        return tuple([_spent(*one) for one in found])

    async def take(self, limit: CompiledLimit, key: CounterKey, uses: int) -> float | TakenUses:
        """Takes the uses, or nothing: then returns the seconds until there will be room; infinity:
        never. Raises RecordUnavailable."""
        share = self._share(limit, key)
        if taken := self._spend(share, limit, key, uses):
            return taken
        if (left_s := self._known_wait_s(share, limit, uses)) > 0:
            return left_s
        async with share.asking:
            # Whoever waited may find what another brought.
            if taken := self._spend(share, limit, key, uses):
                return taken
            if (left_s := self._known_wait_s(share, limit, uses)) > 0:
                return left_s
            return await self._lease(share, limit, key, uses)

    def known_wait_s(self, limit: CompiledLimit, key: CounterKey, uses: int) -> float:
        """Returns the seconds that `take` would, as far as this process knows without asking; 0:
        there may be room."""
        share = self._share(limit, key)
        return 0.0 if _has(share, uses) else self._known_wait_s(share, limit, uses)

    def give_back(self, taken: Iterable[TakenUses]) -> None:
        """The call that took them was refused: they are spent here soon, or the database's again.
        Nobody else has to do without."""
        now = time.monotonic()
        for one in taken:
            share = self._share(one.limit, one.key)
            # Whoever was told that nothing is left may ask again.
            share.none_until = 0.0
            if one.ends_at <= now or share.ends_at <= now:
                self._keep(self._put_back(one.limit, one.key, one.uses, one.busy_until))
                continue
            share.busy_until = min(share.busy_until, one.busy_until)
            share.left += one.uses
            if not share.is_returning:
                share.is_returning = True
                self._keep(self._return(share, one.limit, one.key))

    async def _return(self, share: Share, limit: CompiledLimit, key: CounterKey) -> None:
        try:
            await asyncio.sleep(RETURN_S)
        finally:
            share.is_returning = False
            left, share.left = share.left, 0.0
        await self._put_back(limit, key, left, share.busy_until)

    async def _put_back(
        self, limit: CompiledLimit, key: CounterKey, uses: float, busy_until: float
    ) -> None:
        # Had they not been taken, so much would have come back by itself meanwhile, and was lost
        # where nothing more fits.
        idle_s = max(0.0, time.monotonic() - busy_until)
        back_s = uses * limit.emission_s - idle_s
        if back_s <= 0:
            return
        try:
            async with self._pool.connection(timeout=WITHIN_S) as link, asyncio.timeout(WITHIN_S):
                await link.execute(RETURN, (limit.id, key.key, back_s))
        except (psycopg.Error, PoolTimeout, TimeoutError, OSError) as error:
            log.warning("what a refused call took of a limit is lost: %s", error)

    def _share(self, limit: CompiledLimit, key: CounterKey) -> Share:
        place = _place(limit, key)
        share = self._shares.get(place)
        if share is None:
            if len(self._shares) >= MOST_KEYS:
                self._forget()
            share = self._shares[place] = Share()
        return share

    def _forget(self) -> None:
        """Drops the shares whose window has passed."""
        now = time.monotonic()
        self._shares = {
            place: share
            for place, share in self._shares.items()
            if max(share.ends_at, share.none_until) > now or share.asking.locked()
        }

    def _spend(
        self, share: Share, limit: CompiledLimit, key: CounterKey, uses: int
    ) -> TakenUses | None:
        return _spent(share, limit, key, uses) if _has(share, uses) else None

    def _known_wait_s(self, share: Share, limit: CompiledLimit, uses: int) -> float:
        if uses > limit.burst:
            return math.inf
        now = time.monotonic()
        left_s = share.none_until - now
        if left_s <= 0 or share.believed_until <= now or uses < share.none_for:
            return 0.0
        return left_s + (uses - share.none_for) * limit.emission_s

    async def _lease(
        self, share: Share, limit: CompiledLimit, key: CounterKey, uses: int
    ) -> float | TakenUses:
        asked_at = time.monotonic()
        if share.is_returning and share.left and share.ends_at <= asked_at:
            # Over before it went back.
            self._keep(self._put_back(limit, key, share.left, share.busy_until))
        # Nobody else spends it while this asks for what is missing.
        left, share.left = (share.left if share.ends_at > asked_at else 0.0), 0.0
        least = uses - left
        given = (
            *(limit.id, key.key, key.label, key.agent_id, key.person_id),
            *(max(share_of(limit), least), least, limit.emission_s, float(limit.burst)),
        )
        try:
            async with self._pool.connection(timeout=WITHIN_S) as link, asyncio.timeout(WITHIN_S):
                cursor = await link.execute(LEASE, given)
                row = await cursor.fetchone()
        except (psycopg.Error, PoolTimeout, TimeoutError, OSError) as error:
            raise RecordUnavailable(UNREADABLE) from error
        assert row is not None
        granted, wait_s, ahead_s = row
        if granted:
            busy_until = asked_at + ahead_s
            # Also others may have given back meanwhile.
            has_older = left + share.left > 0
            share.busy_until = min(share.busy_until, busy_until) if has_older else busy_until
            share.left += left + granted - uses
            share.ends_at = asked_at + SHARE_S
            return TakenUses(limit, key, uses, share.ends_at, share.busy_until)
        share.left += left
        if wait_s is None:
            return math.inf
        share.none_until, share.none_for = asked_at + wait_s, uses
        share.believed_until = asked_at + BELIEVED_S
        return float(wait_s)


def _place(limit: CompiledLimit, key: CounterKey) -> tuple[int, str, float, int]:
    """A limit that was changed begins with a share of its own; the count goes on."""
    return limit.id, key.key, limit.emission_s, limit.burst


def _spent(share: Share, limit: CompiledLimit, key: CounterKey, uses: int) -> TakenUses:
    share.left -= uses
    return TakenUses(limit, key, uses, share.ends_at, share.busy_until)


def _has(share: Share, uses: int) -> bool:
    return share.left >= uses and share.ends_at > time.monotonic()
